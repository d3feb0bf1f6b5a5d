import { deltasOf } from '../provider/deltas.ts';
import type { Fault } from '../provider/fault.ts';
import type { Part } from '../provider/script.ts';
import type { Fixture } from '../proxy/wires/dialects/fixtures/fixture.ts';
import type { Tool } from './clients/chat-client.ts';
import { callTo, TIDES } from './situations.ts';

/** An answer in one provider's dialect. */
export interface DialectSituation {
  readonly name: 'prose' | 'a call';
  readonly parts: readonly Part[];
  readonly tools: readonly Tool[];
}

/** Something that goes wrong with the answer. */
export interface DialectTrouble {
  readonly name: string;
  readonly situation: DialectSituation['name'];
  fault(fixture: Fixture, parts: readonly Part[]): Fault;
}

const LOOK = { text: 'The tide will tell whether the kelp can be seen, so I look it up.' };

export const situationsOf = ({ parts }: Fixture): readonly DialectSituation[] => [
  { name: 'prose', parts, tools: [] },
  { name: 'a call', parts: [LOOK, { tool: callTo('call_brest', 'Brest') }], tools: [TIDES] },
];

export const DIALECT_TROUBLES: readonly DialectTrouble[] = [
  {
    name: 'cut before any content',
    situation: 'prose',
    fault: (fixture, parts) => ({ kind: 'reset', at: { event: beginningOf(fixture, parts) } }),
  },
  {
    name: 'cut in the text',
    situation: 'prose',
    fault: (fixture, parts) => ({ kind: 'reset', at: { event: withinText(fixture, parts) } }),
  },
  {
    name: 'failed in the text, as it says itself',
    situation: 'prose',
    fault: (fixture, parts) => ({ kind: 'error_own', at: { event: withinText(fixture, parts) } }),
  },
  {
    name: 'silent in the text but for signs of life, and then cut',
    situation: 'prose',
    fault: (fixture, parts) => ({
      kind: fixture.accent.ping === undefined ? 'comments' : 'pings',
      at: { event: withinText(fixture, parts) },
      every_ms: 5,
      for_ms: 20,
      cut: 'reset',
    }),
  },
  {
    name: 'cut in the call',
    situation: 'a call',
    fault: (fixture, parts) => ({ kind: 'reset', at: withinCall(fixture, parts) }),
  },
];

const eventsOf = ({ accent, model, tool_shape = 'openai' }: Fixture, parts: readonly Part[]) =>
  accent.tell(
    { deltas: deltasOf(parts, { tool_shape }), finish: 'stop' },
    { id: 'id', model, created: 0 },
    undefined,
  );

/** How many events come before the first one with content. */
function beginningOf(fixture: Fixture, parts: readonly Part[]): number {
  const [first = {}] = deltasOf(parts, {});
  const said = `:${JSON.stringify(Object.values(first)[0])}`;
  return eventsOf(fixture, parts).events.findIndex((event) => event.includes(said));
}

/** Late enough to tell a continuation from a fresh start. */
const withinText = (fixture: Fixture, parts: readonly Part[]): number =>
  eventsOf(fixture, parts).finished_after - 6;

/** Within the arguments, whether they arrive in fragments or all at once. */
function withinCall(fixture: Fixture, parts: readonly Part[]): { readonly within: number } {
  const { events } = eventsOf(fixture, parts);
  const begun = events.findIndex((event) => event.includes('call_brest'));
  return { within: fixture.tool_shape === undefined ? begun + 2 : begun };
}
