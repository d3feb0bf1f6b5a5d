import { isObject } from '../../../lib/json.ts';
import type { Delta } from '../../../plans/delta.ts';
import {
  cancelledCallOf,
  type DeliveredEvent,
  type DeliveredEvents,
  type DeliveredReader,
  type Rebuilder,
} from '../common/delivered-events.ts';
import type { WireReader } from '../common/wire.ts';
import type { ChunkEnvelope, ChunkForm } from './chunk-envelope.ts';
import type { ChatChunk, ChunkEvent } from './chunk-reader.ts';

const DONE = '[DONE]';

/** Delivered chunks. `readerOf`: creates a reader for provider chunks. */
export const chunkDeliveredEvents = (
  readerOf: () => WireReader<ChunkEvent>,
  form: ChunkForm,
): DeliveredEvents<ChunkEvent> => ({
  reader: () => new ChunkDeliveredReader(readerOf()),

  endOf(payload) {
    if (payload === DONE) return 'done';
    if (!payload.startsWith('{"error":')) return undefined;
    // A provider's chunk may begin with the same field.
    return chunkOf(payload) ? undefined : 'error';
  },

  hasIdentity: (payload) => chunkOf(payload) !== undefined,

  idOf(payload) {
    const chunk: unknown = payload === DONE ? undefined : JSON.parse(payload);
    return isObject(chunk) && typeof chunk.id === 'string' ? chunk.id : undefined;
  },

  standIn: (first) => ({
    kind: 'answer',
    payload: '',
    chunk: JSON.parse(first) as ChatChunk,
    deltas: [],
    role: false,
    manyChoices: false,
  }),

  rebuilder: () => new ChunkRebuilder(form),

  failure: (error) => [JSON.stringify({ error })],

  done: [{ deltas: [], payload: DONE }],
});

class ChunkRebuilder implements Rebuilder {
  readonly #form: ChunkForm;
  #envelope: ChunkEnvelope | undefined;

  constructor(form: ChunkForm) {
    this.#form = form;
  }

  add(payload: string): void {
    const chunk = this.#envelope ? undefined : chunkOf(payload);
    if (chunk) this.#envelope = this.#form.envelopeOf(chunk);
  }

  payloadOf(deltas: readonly Delta[]): string {
    if (!this.#envelope) throw new Error('the first event of a run was stored without its payload');
    return this.#form.textChunk(this.#envelope, deltas, false);
  }
}

class ChunkDeliveredReader implements DeliveredReader {
  /** Not used for calls: in delivered events, only their positions identify them. */
  readonly #reader: WireReader<ChunkEvent>;

  constructor(reader: WireReader<ChunkEvent>) {
    this.#reader = reader;
  }

  read(payload: string, calls: number): DeliveredEvent | undefined {
    if (payload === DONE) return { deltas: [] };
    const event = this.#reader.read({ data: payload });
    if (event.kind === 'error_event') return { deltas: [] };
    if (event.kind !== 'answer') return undefined;
    const said = callDeltas(event.chunk, calls);
    const cancelled = cancelledCallOf(event.chunk);
    return { deltas: said.length > 0 ? said : event.deltas, ...(cancelled !== undefined && { cancelled }) };
  }
}

function chunkOf(payload: string): ChatChunk | undefined {
  if (payload === DONE) return undefined;
  const chunk: unknown = JSON.parse(payload);
  return isObject(chunk) && Array.isArray(chunk.choices) ? chunk : undefined;
}

/** The call fragments in a delivered event. `next`: the position of the next call. */
function callDeltas(chunk: ChatChunk, next: number): readonly Delta[] {
  const choice: unknown = Array.isArray(chunk.choices) ? chunk.choices[0] : undefined;
  const delta = isObject(choice) && isObject(choice.delta) ? choice.delta : {};
  const legacy = isObject(delta.function_call) ? delta.function_call : undefined;
  const fragments = legacy
    ? [{ index: typeof legacy.name === 'string' ? next : next - 1, id: '', function: legacy }]
    : Array.isArray(delta.tool_calls)
      ? delta.tool_calls.filter(isObject)
      : [];
  return fragments.flatMap(({ index, id, function: call }): Delta[] => {
    if (typeof index !== 'number' || !isObject(call)) return [];
    const { name, arguments: text } = call;
    const start = typeof name === 'string' && typeof id === 'string' && index === next;
    return [
      ...(start ? [{ kind: 'tool_start', index, id, name } as const] : []),
      ...(typeof text === 'string' && text !== '' && (start || index < next)
        ? [{ kind: 'tool_arguments', index, text } as const]
        : []),
    ];
  });
}
