import type { EventSourceMessage } from 'eventsource-parser';
import { failureStatusOf, providerErrorIn } from '../../../interrupts/provider-error.ts';
import { isObject, parseJson } from '../../../lib/json.ts';
import type { Delta } from '../../../plans/delta.ts';
import { normalisedArguments, parses } from '../../../plans/tool-call.ts';
import {
  dataOf,
  isUnreadableText,
  MALFORMED,
  NOTHING,
  strayValue,
  unparsedEvent,
} from '../common/event-data.ts';
import type { WireEvent, WireReader } from '../common/wire.ts';
import { finishReasonOf, usageOf } from './ending.ts';
import {
  type BlockKind,
  isText,
  kindOf,
  type MessagesEvent,
  type MessagesPayload,
  type SourceBlock,
  type Thought,
} from './event.ts';
import { isProviderBlock, type PausedUse, type ProviderUses, providerToolDeltas } from './provider-tools.ts';

export type MessagesReading = WireEvent<MessagesEvent>;

const NO_DELTAS: readonly Delta[] = [];

/** A block in progress. */
interface OpenBlock extends SourceBlock {
  /** The initial block. */
  readonly start: Readonly<Record<string, unknown>>;
  thinking: string;
  arguments: string;
}

/** Reads the events of one attempt on `/v1/messages`. */
export class MessagesReader implements WireReader<MessagesEvent> {
  readonly samples: MessagesPayload[] = [];
  /** Complete, signed reasoning at the beginning of the answer, which the provider accepts back only verbatim. */
  readonly sealed: Thought[] = [];
  readonly #nextCall: () => number;
  readonly #blocks = new Map<number, OpenBlock>();
  readonly #uses: ProviderUses = new Map();
  readonly #paused: readonly PausedUse[];
  #isBegun = false;
  #startUsage: unknown;
  /** Something other than reasoning has arrived. */
  #answers = false;

  /** `paused`: uses with which the provider continues at the beginning of the message. */
  constructor(nextCall: () => number, paused: readonly PausedUse[] = []) {
    this.#nextCall = nextCall;
    this.#paused = paused;
  }

  read(message: EventSourceMessage): MessagesReading {
    const payload = dataOf(message);
    // Not part of this wire, but gateways in front of other wires end every stream with it.
    if (payload.trim() === '[DONE]') return { kind: 'done' };
    let parsed: unknown;
    try {
      parsed = parseJson(payload);
    } catch {
      return unparsedEvent(payload, message.event);
    }
    const isError = message.event === 'error' || !isObject(parsed) || parsed.type === 'error' || parsed.error;
    const error = isError ? providerErrorIn(parsed) : undefined;
    if (error) return { kind: 'error_event', error };
    if (message.event === 'error') return { kind: 'error_event', error: { words: [], message: payload } };
    if (!isObject(parsed) || typeof parsed.type !== 'string') return strayValue(parsed);
    return this.#read(parsed, parsed.type, payload);
  }

  #read(parsed: MessagesPayload, type: string, payload: string): MessagesReading {
    switch (type) {
      case 'message_start':
        if (!isObject(parsed.message)) return MALFORMED;
        this.#isBegun = true;
        this.#startUsage = parsed.message.usage;
        this.samples.push(parsed);
        return this.#begin(parsed, type, payload);
      case 'content_block_start':
        return this.#isBegun ? this.#start(parsed, type, payload) : MALFORMED;
      case 'content_block_delta':
        return this.#delta(parsed, type, payload);
      case 'content_block_stop':
        return this.#stop(parsed, type, payload);
      case 'message_delta':
        return this.#isBegun ? this.#messageDelta(parsed, type, payload) : MALFORMED;
      case 'message_stop':
        return { kind: 'done' };
      case 'ping':
        return { ...this.#event(parsed, type, payload), ping: true };
      default:
        return this.#event(parsed, type, payload);
    }
  }

  /** Starts the tools of a paused turn, whose results may be the first events about them. */
  #begin(parsed: MessagesPayload, type: string, payload: string): MessagesEvent {
    const running = this.#paused.map(({ id, name }) => ({ kind: 'provider_tool_start', id, name }) as const);
    const event = this.#event(parsed, type, payload, undefined, running);
    return running.length > 0 ? { ...event, aside: true } : event;
  }

  #start(parsed: MessagesPayload, type: string, payload: string): MessagesReading {
    const { index, content_block: start } = parsed;
    if (typeof index !== 'number' || !isObject(start) || typeof start.type !== 'string') return MALFORMED;
    const kind = kindOf(start.type);
    if (kind === 'tool' && !(typeof start.name === 'string' && start.name !== '')) return MALFORMED;
    const block: OpenBlock = {
      kind,
      type: start.type,
      start,
      ...(kind === 'tool' && { call: this.#nextCall() }),
      thinking: '',
      arguments: '',
    };
    this.#blocks.set(index, block);
    if (kind === 'text' || kind === 'tool') this.#answers = true;
    return this.#event(parsed, type, payload, block, this.#said(block));
  }

  /** The content in a block's first event. */
  #said(block: OpenBlock): readonly Delta[] {
    const { kind, call, start } = block;
    switch (kind) {
      case 'text':
        return isText(start.text) ? [{ kind: 'text', text: start.text }] : NO_DELTAS;
      case 'thinking':
        if (!isText(start.thinking)) return NO_DELTAS;
        block.thinking = start.thinking;
        return [{ kind: 'reasoning', text: start.thinking }];
      case 'tool': {
        const { type: _type, id, name, input: _input, ...extra } = start;
        return [
          {
            kind: 'tool_start',
            index: call ?? 0,
            id: typeof id === 'string' ? id : '',
            name: String(name),
            ...(Object.keys(extra).length > 0 && { extra }),
          },
        ];
      }
      case 'sealed':
        return NO_DELTAS;
    }
  }

  #delta(parsed: MessagesPayload, type: string, payload: string): MessagesReading {
    const { index, delta } = parsed;
    const block = typeof index === 'number' ? this.#blocks.get(index) : undefined;
    if (!block || !isObject(delta)) return MALFORMED;
    const { text, thinking, partial_json, signature } = delta;
    const kind = KIND_OF_DELTA[String(delta.type)];
    const said = text ?? thinking ?? partial_json;
    if (kind && block.kind !== 'sealed' && (isUnreadableText(said) || (isText(said) && kind !== block.kind)))
      return MALFORMED;
    switch (delta.type) {
      case 'text_delta':
        if (block.kind !== 'text' || !isText(text)) break;
        return this.#event(parsed, type, payload, block, [{ kind: 'text', text }]);
      case 'thinking_delta':
        if (block.kind !== 'thinking' || !isText(thinking)) break;
        block.thinking += thinking;
        return this.#event(parsed, type, payload, block, [{ kind: 'reasoning', text: thinking }]);
      case 'signature_delta':
        if (block.kind === 'thinking' && isText(signature)) this.#seal(block, signature);
        break;
      case 'input_json_delta':
        if (!isText(partial_json)) break;
        block.arguments += partial_json;
        if (block.kind !== 'tool') break;
        return this.#event(parsed, type, payload, block, [
          { kind: 'tool_arguments', index: block.call ?? 0, text: partial_json },
        ]);
    }
    return this.#event(parsed, type, payload, block);
  }

  #stop(parsed: MessagesPayload, type: string, payload: string): MessagesReading {
    const { index } = parsed;
    const block = typeof index === 'number' ? this.#blocks.get(index) : undefined;
    // Some gateways end a block twice.
    if (!block || typeof index !== 'number') return NOTHING;
    this.#blocks.delete(index);
    if (block.type === 'redacted_thinking' && !this.#answers)
      this.sealed.push({ type: block.type, data: block.start.data });
    if (block.kind === 'sealed' && block.type !== 'redacted_thinking') this.#answers = true;
    const deltas =
      block.kind === 'sealed' ? providerToolDeltas(this.#uses, block.start, block.arguments) : closeOf(block);
    return this.#event(parsed, type, payload, block, deltas);
  }

  #messageDelta(parsed: MessagesPayload, type: string, payload: string): MessagesReading {
    const reason = isObject(parsed.delta) ? parsed.delta.stop_reason : undefined;
    const usage = usageOf(parsed.usage, this.#startUsage);
    const deltas: Delta[] = usage ? [{ kind: 'usage', usage }] : [];
    if (typeof reason !== 'string' || reason === '')
      return this.#event(parsed, type, payload, undefined, deltas);
    const status = failureStatusOf(reason);
    if (status !== undefined) return { kind: 'bad_finish', reason, status };
    deltas.unshift({ kind: 'finish', reason: finishReasonOf(reason) });
    return this.#event(parsed, type, payload, undefined, deltas);
  }

  #seal({ thinking, start }: OpenBlock, signature: string): void {
    if (this.#answers) return;
    const { type: _type, ...rest } = start;
    this.sealed.push({ ...rest, type: 'thinking', thinking, signature });
  }

  #event(
    parsed: MessagesPayload,
    type: string,
    payload: string,
    block?: SourceBlock,
    deltas = NO_DELTAS,
  ): MessagesEvent {
    const event = { parsed, type, payload, deltas, thoughts: this.sealed };
    const isWork = block !== undefined && deltas.length === 0 && type !== 'content_block_stop';
    return {
      kind: 'answer',
      manyChoices: false,
      ...event,
      ...(block && { block }),
      ...(block?.kind === 'sealed' && isProviderBlock(block.type) && { aside: true }),
      ...(isWork && { progress: block.kind === 'thinking' ? 'thinking' : 'work' }),
    };
  }
}

/** The kind of block that each delta type belongs to. */
const KIND_OF_DELTA: Readonly<Record<string, BlockKind>> = {
  text_delta: 'text',
  thinking_delta: 'thinking',
  input_json_delta: 'tool',
};

/**
 * The end of its block closes a call, unless the arguments are incomplete: a limit also ends the block. Some gateways
 * send the arguments with the beginning.
 */
function closeOf({ kind, call: index = 0, start, arguments: text }: OpenBlock): readonly Delta[] {
  if (kind !== 'tool') return NO_DELTAS;
  const given =
    isObject(start.input) && Object.keys(start.input).length > 0 ? JSON.stringify(start.input) : '';
  const whole = text === '' ? given : text;
  if (!parses(normalisedArguments(whole))) return NO_DELTAS;
  return [
    ...(text === '' && given !== '' ? [{ kind: 'tool_arguments', index, text: given } as const] : []),
    { kind: 'tool_close', index, proof: 3 },
  ];
}
