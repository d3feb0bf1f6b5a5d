import fc from 'fast-check';
import { type Cut, cutsOf } from '../../plans/seam/cuts.ts';
import { deltasOf } from '../../provider/deltas.ts';
import type { Fault, Position } from '../../provider/fault.ts';
import type { Chunking, Plan } from '../../provider/script.ts';
import { PROVIDER_WIRES } from '../../provider/wires/registry.ts';
import type { Setting } from './settings.ts';

export interface SocketCut extends Cut {
  /** How both attempts are split into deltas. */
  readonly chunk: Chunking;
  /** No resets: a reset could discard bytes that were already sent. */
  readonly fault: 'clean_eof' | 'fin_in_chunk';
  /** The number of events after which the continuation is cut as well, if it is. */
  readonly again: number | undefined;
}

/** The first cuts don't depend on `count`. */
export function socketCuts(
  kinds: readonly string[],
  fits: (cut: Cut, index: number) => boolean,
  seed: number,
  count: number,
): SocketCut[] {
  const over = fc.record({
    chunk: fc.constantFrom<Chunking>('token', 'token', 1, 2, 3, 7, 20, 40),
    fault: fc.constantFrom('clean_eof', 'fin_in_chunk'),
    again: fc.option(fc.integer({ min: 1, max: 12 }), { nil: undefined, freq: 2 }),
  });
  const cuts = fc.tuple(cutsOf(kinds), over).map(([cut, how]) => ({ ...cut, ...how }));
  const fitting = Array.from({ length: count }, (_, index) => cuts.filter((cut) => fits(cut, index)));
  return fc.sample(fc.tuple(...fitting), { seed, numRuns: 1 })[0] as unknown as SocketCut[];
}

/** The provider's plan for a cut. The text is split into parts only so that a delta ends at the cut. */
export function planOf(setting: Setting, cut: SocketCut): Plan {
  const { whole, delivered, chunk, fault, again } = cut;
  const parts = [delivered, whole.slice(delivered.length)].map((text) => ({ text }));
  const faults: Fault[] = [{ kind: fault, at: afterText(setting, delivered, chunk) }];
  if (again !== undefined) faults.push({ kind: fault, at: { event: again } });
  return { ...setting.plan, parts, chunk, faults };
}

/** The position after the event with the last delta of an answer's initial text. */
function afterText({ wire, plan, model }: Setting, text: string, chunk: Chunking): Position {
  const count = deltasOf([{ text }], { chunk }).length;
  const deltas = Array.from({ length: count + 1 }, (_, index) => ({ content: `@${index + 1}` }));
  const said = { deltas, finish: 'stop' };
  const envelope = { id: '', model, created: 0, wire };
  const usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  const { events } = plan.accent
    ? plan.accent.tell(said, envelope, undefined)
    : PROVIDER_WIRES[wire].events(said, envelope, usage, 'none');
  return { event: events.findIndex((event) => event.includes(`"@${count}"`)) + 1 };
}
