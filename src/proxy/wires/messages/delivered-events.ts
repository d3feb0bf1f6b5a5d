import { isObject } from '../../../lib/json.ts';
import type { Delta } from '../../../plans/delta.ts';
import {
  cancelledCallOf,
  type DeliveredEvent,
  type DeliveredEvents,
  type DeliveredReader,
  textOf,
} from '../common/delivered-events.ts';
import { ShownBlocks } from './blocks.ts';
import { finishReasonOf, usageOf } from './ending.ts';
import {
  errorPayload,
  isText,
  MESSAGE_STOP,
  type MessagesEvent,
  type MessagesPayload,
  textDelta,
  typeOf,
} from './event.ts';
import { isProviderBlock, type ProviderUses, providerToolDeltas } from './provider-tools.ts';
import { MessagesReader } from './reader.ts';

const NOTHING: DeliveredEvent = { deltas: [] };

/** Delivered events of `/v1/messages`. */
export const messagesDeliveredEvents: DeliveredEvents<MessagesEvent> = {
  showsCloses: true,

  reader: () => new MessagesDeliveredReader(),

  endOf(payload) {
    const type = typeOf(payload);
    if (type === 'message_stop') return 'done';
    return type === 'error' ? 'error' : undefined;
  },

  hasIdentity: (payload) => typeOf(payload) === 'message_start',

  idOf(payload) {
    const { message } = JSON.parse(payload) as MessagesPayload;
    return isObject(message) && typeof message.id === 'string' ? message.id : undefined;
  },

  standIn: () => ({
    kind: 'answer',
    payload: '',
    parsed: {},
    type: '',
    deltas: [],
    thoughts: [],
    manyChoices: false,
  }),

  rebuilder() {
    const blocks = new ShownBlocks();
    return {
      add: (payload) => blocks.add(payload),
      payloadOf: (deltas) => textDelta(blocks.latest?.index ?? 0, textOf(deltas)),
    };
  },

  sealed(sent) {
    const reader = new MessagesReader(() => 0);
    for (const { payload } of sent)
      if (payload !== undefined) reader.read({ data: payload, id: undefined, event: undefined });
    return reader.sealed;
  },

  failure: (error) => [errorPayload(error)],

  done: [{ deltas: [], payload: MESSAGE_STOP }],
};

class MessagesDeliveredReader implements DeliveredReader {
  /** Positions of calls by block index; undefined for other blocks. */
  readonly #blocks = new Map<unknown, number | undefined>();
  readonly #uses: ProviderUses = new Map();
  /** Open blocks of provider tools, by index. */
  readonly #provided = new Map<
    unknown,
    { readonly start: Readonly<Record<string, unknown>>; json: string }
  >();

  read(payload: string, calls: number): DeliveredEvent | undefined {
    const event = parsed(payload);
    switch (event?.type) {
      case undefined:
        return undefined;
      case 'content_block_start':
        return this.#start(event, calls);
      case 'content_block_delta':
        return this.#delta(event, calls);
      case 'content_block_stop': {
        const provided = this.#provided.get(event.index);
        this.#provided.delete(event.index);
        if (provided) return { deltas: providerToolDeltas(this.#uses, provided.start, provided.json) };
        const index = this.#callAt(event, calls);
        return index === undefined ? NOTHING : { deltas: [{ kind: 'tool_close', index, proof: 3 }] };
      }
      case 'message_delta':
        return { deltas: endOf(event) };
      case 'ping':
        return { deltas: [], ...cancelledBy(event) };
      default:
        return NOTHING;
    }
  }

  #start({ index, content_block: block }: MessagesPayload, calls: number): DeliveredEvent {
    const isCall = isObject(block) && block.type === 'tool_use';
    this.#blocks.set(index, isCall ? calls : undefined);
    if (isObject(block) && isProviderBlock(String(block.type)))
      this.#provided.set(index, { start: block, json: '' });
    if (!isCall) return NOTHING;
    return { deltas: [{ kind: 'tool_start', index: calls, id: String(block.id), name: String(block.name) }] };
  }

  #delta(event: MessagesPayload, calls: number): DeliveredEvent {
    const { text, thinking, partial_json } = isObject(event.delta) ? event.delta : {};
    if (isText(text)) return { deltas: [{ kind: 'text', text }] };
    if (isText(thinking)) return { deltas: [{ kind: 'reasoning', text: thinking }] };
    const provided = this.#provided.get(event.index);
    if (provided && isText(partial_json)) provided.json += partial_json;
    const index = this.#callAt(event, calls);
    if (!isText(partial_json) || index === undefined) return NOTHING;
    return { deltas: [{ kind: 'tool_arguments', index, text: partial_json }] };
  }

  /** A block from before the replayed events can only be that of the latest call. */
  #callAt({ index }: MessagesPayload, calls: number): number | undefined {
    if (this.#blocks.has(index)) return this.#blocks.get(index);
    return calls > 0 ? calls - 1 : undefined;
  }
}

function parsed(payload: string): MessagesPayload | undefined {
  try {
    const event: unknown = JSON.parse(payload);
    return isObject(event) && typeof event.type === 'string' ? event : undefined;
  } catch {
    return undefined;
  }
}

function endOf({ delta, usage: report }: MessagesPayload): readonly Delta[] {
  const reason = isObject(delta) ? delta.stop_reason : undefined;
  const usage = usageOf(report, undefined);
  return [
    ...(typeof reason === 'string' ? [{ kind: 'finish', reason: finishReasonOf(reason) } as const] : []),
    ...(usage ? [{ kind: 'usage', usage } as const] : []),
  ];
}

function cancelledBy(event: MessagesPayload): { readonly cancelled?: string } {
  const cancelled = cancelledCallOf(event);
  return cancelled === undefined ? {} : { cancelled };
}
