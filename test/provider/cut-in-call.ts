import type { WireName } from '../../src/checkpoint/journal.ts';
import { deltasOf } from './deltas.ts';
import type { Part, Plan } from './script.ts';
import { PROVIDER_WIRES } from './wires/registry.ts';

const NO_USAGE = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };

/** A plan for an answer that is reset as soon as the call with this id has begun. */
export function cutInCall(wire: WireName, id: string, parts: readonly Part[]): Plan {
  const said = { deltas: deltasOf(parts, {}), finish: 'tool_calls' };
  const envelope = { id: '', model: '', created: 0 };
  const { events } = PROVIDER_WIRES[wire].events(said, envelope, NO_USAGE, 'final');
  const event = events.findIndex((each) => each.includes(`"${id}"`)) + 1;
  if (event === 0) throw new Error(`no event names ${id}`);
  return { parts, faults: [{ kind: 'reset', at: { event } }] };
}
