import { describe, expect, test } from 'vitest';
import { foldJournal } from '../../src/checkpoint/journal-fold.ts';
import { MemoryStore } from '../../src/checkpoint/memory/store.ts';
import { salvagedRun } from '../../src/checkpoint/salvaged-run.ts';
import type { StoredRun } from '../../src/checkpoint/store.ts';
import { runStatus } from '../../src/proxy/api/run-documents.ts';
import { withEnding } from '../../src/proxy/resume/stored-ending.ts';
import { runWithLostCall } from '../../src/proxy/run/notices/lost-calls.ts';
import { salvageNote, threadKey } from '../../src/proxy/run/notices/thread-notice.ts';
import { RestoredRun } from '../../src/proxy/run/restored-run.ts';
import { TransportFailure } from '../../src/proxy/upstream/transport.ts';
import { WIRES } from '../../src/proxy/wires/registry.ts';
import { TOOLS } from '../simulation/arbitraries.ts';
import { OWNER, RUN, type SimulationOptions, simulate } from '../simulation/simulate.ts';

const CITY = '{"city":"Paris"}';
const settled = (id: string) => ({ id, name: 'forecast', arguments: CITY });

type Choice = readonly [index: number, delta: object, finish_reason?: string];
const content = (index: number, text: string): Choice => [index, { content: text }];
const begins = (index: number, id: string, place = 0): Choice => [
  index,
  { tool_calls: [{ index: place, id, type: 'function', function: { name: 'forecast', arguments: '' } }] },
];
const fragment = (index: number, text: string, place = 0): Choice => [
  index,
  { tool_calls: [{ index: place, function: { arguments: text } }] },
];
const finishes = (index: number): Choice => [index, {}, 'tool_calls'];

/** In the first choice, a second call is cut; the second choice is finished. */
const SAID: readonly Choice[] = [
  [0, { role: 'assistant', content: '' }],
  [1, { role: 'assistant', content: '' }],
  content(0, 'I look.'),
  begins(0, 'call_a'),
  begins(1, 'call_c'),
  fragment(0, '{"city":'),
  fragment(1, '{"city":'),
  fragment(0, '"Paris"}'),
  fragment(1, '"Paris"}'),
  finishes(1),
  begins(0, 'call_b', 1),
  fragment(0, '{"ci', 1),
];
const SETTLED = [settled('call_a'), settled('call_c')];

/** Sends these chunks, then resets the connection. */
function provider(said: readonly Choice[]): NonNullable<SimulationOptions['provider']> {
  const chunks = said.map(([index, delta, finish_reason = null]) =>
    JSON.stringify({ id: 'chatcmpl-1', created: 1, model: 'm', choices: [{ index, delta, finish_reason }] }),
  );
  return {
    requests: [],
    attempts: [],
    async close() {},
    async open() {
      return {
        status: 200,
        headers: { 'content-type': 'text/event-stream' },
        body: {
          async consume(take) {
            for (const chunk of chunks) await take(Buffer.from(`data: ${chunk}\n\n`));
            throw new TransportFailure('ECONNRESET');
          },
        },
      };
    },
  };
}

async function givenUp(said: readonly Choice[] = SAID) {
  let store: MemoryStore | undefined;
  const { stream, outcome } = await simulate(
    { parts: [] },
    {
      provider: provider(said),
      request: { n: 2, tools: TOOLS },
      thread: 'thread',
      store(time) {
        store = new MemoryStore({ time, ttl_ms: 604_800_000 });
        return store;
      },
    },
  );
  const stored = await store?.read(RUN, OWNER, 0);
  if (!store || !stored) throw new Error('nothing was stored');
  const { holdfast } = stream.error as unknown as { holdfast: Record<string, readonly object[]> };
  return { holdfast, outcome, stored, notes: store.notes };
}

/** The run as if its replica had been killed before giving it up. */
function killed({ records, ...stored }: StoredRun): StoredRun {
  const [header, ...others] = records;
  const events = others.flatMap((record) => record.events).slice(0, -1);
  if (!header) throw new Error('there is no header');
  const { end: _, ...rest } = stored;
  return {
    ...rest,
    status: 'running',
    seq: events.length,
    records: [header, { seq: events.length, events }],
  };
}

describe('the settled calls of all choices, when the answer is given up', () => {
  test('are in the error to its client, and in the run that its owner reads', async () => {
    const { holdfast, outcome, stored } = await givenUp();
    expect(outcome).toBe('failed');
    expect(holdfast.tool_calls).toEqual(expect.arrayContaining(SETTLED));
    expect(holdfast.tool_calls).toHaveLength(SETTLED.length);
    const told = SETTLED.map((call) => ({ type: 'tool_call', ...call }));
    expect(holdfast.parts).toEqual(expect.arrayContaining(told));
    expect(runStatus(RUN, stored)).toMatchObject({
      text: 'I look.',
      tool_calls: SETTLED,
      parts: [{ type: 'text', text: 'I look.' }, ...told],
    });
  });

  test('are named in its thread, with the one that was cut', async () => {
    const { notes } = await givenUp();
    const note = JSON.parse((await notes.get(OWNER, threadKey('thread'))) ?? '{}') as Record<
      string,
      { id: string }[]
    >;
    expect(note.settled_calls?.map(({ id }) => id)).toEqual(['call_a', 'call_c']);
    expect(note.unfinished_calls).toEqual([{ id: 'call_b', name: 'forecast' }]);
  });

  test('lead from the result of one to the call that was cut', async () => {
    const { notes } = await givenUp();
    for (const call of SETTLED) expect(await runWithLostCall(notes, OWNER, [call])).toBe(RUN);
    const all = SAID.filter(([index]) => index === 1);
    expect(
      await runWithLostCall((await givenUp([...all.slice(0, -1)])).notes, OWNER, [settled('call_c')]),
    ).toBe(undefined);
  });

  test('are recorded once, and none that only looks whole', async () => {
    const { stored } = await givenUp([begins(0, 'call_a'), fragment(0, '{}'), content(1, 'x')]);
    expect(foldJournal(stored.records).choiceCalls).toEqual([]);
    const { choiceCalls, tool_calls } = foldJournal((await givenUp()).stored.records);
    expect([choiceCalls, tool_calls]).toEqual([SETTLED, []]);
  });

  test('include one that nothing came after', async () => {
    const { stored } = await givenUp([begins(0, 'call_a'), fragment(0, CITY)]);
    expect(foldJournal(stored.records).choiceCalls).toEqual([settled('call_a')]);
  });
});

describe('the settled calls of all choices, when the replica is killed', () => {
  test('are in its journal as soon as they are settled', async () => {
    const stored = killed((await givenUp()).stored);
    expect(runStatus(RUN, stored)).toMatchObject({ status: 'running', tool_calls: SETTLED });
  });

  test('are named in the thread of the salvaged run, and in the error that ends its stream', async () => {
    const stored = killed((await givenUp()).stored);
    const salvaged = salvagedRun(RUN, OWNER, stored, 0);
    expect(salvaged.end.status).toBe('recovered_from_partial');
    expect(salvageNote(salvaged)?.settled_calls?.map(({ id }) => id)).toEqual(['call_a', 'call_c']);
    const ended = withEnding(RUN, { ...stored, status: salvaged.end.status, end: salvaged.end });
    const { error } = JSON.parse(ended.records.at(-1)?.events.at(-1)?.payload ?? '{}') as {
      error: { code: string; holdfast: { tool_calls: object[] } };
    };
    // Not a `tool_calls` finish, because the other choices aren't finished.
    expect(error).toMatchObject({ code: 'run_salvaged', holdfast: { tool_calls: SETTLED } });
  });

  test('are still known to the replica that takes it over, and settle nothing', async () => {
    const stored = killed((await givenUp()).stored);
    const rules = {
      wire: WIRES.chat_completions,
      schemas: new Map(),
      tool_proof: 1,
      live: false,
      forwarded: true,
    } as const;
    const restored = new RestoredRun({ stored, tail: [] }, rules);
    expect(restored.choiceCalls).toMatchObject(SETTLED);
    expect(restored.transcript.closedCalls).toEqual([]);
  });
});
