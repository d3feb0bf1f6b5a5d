import { finishReasonOf } from '../../src/proxy/wires/messages/ending.ts';
import { signedBy } from '../provider/wires/messages-events.ts';
import { readFrames } from './frames.ts';
import { emptyReading, type StreamReading, settleCalls } from './reading.ts';

interface Event {
  readonly type: string;
  readonly index?: number;
  readonly message?: { readonly id?: unknown; readonly model?: unknown; readonly content?: unknown };
  readonly content_block?: {
    readonly type: string;
    readonly id?: string;
    readonly name?: string;
    readonly tool_use_id?: string;
    readonly input?: object;
  };
  readonly delta?: {
    readonly type?: string;
    readonly text?: string;
    readonly thinking?: string;
    readonly signature?: string;
    readonly partial_json?: string;
    readonly stop_reason?: string;
  };
  readonly usage?: Record<string, unknown>;
  readonly error?: Record<string, unknown>;
  readonly holdfast?: Record<string, unknown>;
}

interface Block {
  readonly index: number;
  readonly type: string;
  text: string;
  signature: string;
  readonly call?: { id: string; name: string; arguments: string };
}

/**
 * Reads a body of `/v1/messages` as strictly as the strictest SDK, and as the API when it receives the message back.
 * `live`: fragments of tool calls may be cancelled. `parted`: a replica may have died after it began a block and before
 * the block had content.
 */
export function readMessages(body: string, { live = false, parted = false } = {}): StreamReading {
  return new MessagesStream(live, parted).read(body);
}

class MessagesStream {
  readonly #live: boolean;
  readonly #parted: boolean;
  readonly #reading = emptyReading();
  readonly #cancelled = new Set<object>();
  #blocks = 0;
  /** The ids of provider-run tools that have no result yet. */
  readonly #uses = new Set<unknown>();
  #open: Block | undefined;
  #begun = false;

  constructor(live: boolean, parted: boolean) {
    this.#live = live;
    this.#parted = parted;
  }

  read(body: string): StreamReading {
    const reading = this.#reading;
    reading.events = readFrames(body, {
      take: (event, name) => this.#take(event as Event, name),
      advise: (advisory) => this.#advise(advisory),
      complain: (what) => this.#complain(what),
    });
    settleCalls(reading, this.#cancelled, this.#live);
    if (reading.error && (reading.done || reading.finish !== undefined))
      this.#complain('an error beside an end');
    return reading;
  }

  #take(event: Event, name: string | undefined): void {
    const { type } = event;
    const reading = this.#reading;
    if (name !== type) this.#complain(`a ${type} with the name ${name}`);
    if (reading.done) this.#complain(`${type} after the end`);
    if (reading.error) this.#complain(`${type} after the error`);
    // All of the provider's SDKs drop pings anywhere in the stream.
    if (!this.#begun && !['message_start', 'error', 'ping'].includes(type))
      this.#complain(`${type} before the message`);
    if (reading.finish !== undefined && !['message_stop', 'error'].includes(type))
      this.#complain(`${type} after the stop reason`);
    switch (type) {
      case 'message_start':
        if (this.#begun) this.#complain('a second message_start');
        this.#begun = true;
        if (!event.message?.id || !event.message.model || !Array.isArray(event.message.content))
          this.#complain('a message without identity');
        return;
      case 'ping':
        if (event.holdfast) this.#advise(event.holdfast);
        return;
      case 'content_block_start':
        this.#start(event);
        return;
      case 'content_block_delta':
        this.#delta(event);
        return;
      case 'content_block_stop':
        this.#stop(event);
        return;
      case 'message_delta':
        this.#finish(event);
        return;
      case 'message_stop':
        if (reading.finish === undefined) this.#complain('an end without a stop reason');
        reading.done = true;
        return;
      case 'error':
        if (typeof event.error?.type !== 'string' || typeof event.error.message !== 'string')
          this.#complain('an error that says nothing');
        reading.error = event.error ?? {};
        return;
      default:
        this.#complain(`an event of a type that nobody knows: ${type}`);
    }
  }

  #start({ index, content_block: block }: Event): void {
    if (this.#open) this.#complain('a block within a block');
    if (index !== this.#blocks) this.#complain(`block ${index} is not the next one`);
    this.#blocks++;
    const { type = '', id = '', name = '', input } = block ?? {};
    if (type === 'server_tool_use' || type === 'mcp_tool_use') this.#uses.add(id);
    if (type.endsWith('_tool_result') && !this.#uses.delete(block?.tool_use_id))
      this.#complain('a result without its use');
    const call = type === 'tool_use' ? { id, name, arguments: '' } : undefined;
    if (call && !(id && name)) this.#complain('a call without identity');
    if (call && JSON.stringify(input) !== '{}') this.#complain('a call that begins with arguments');
    if (call) this.#reading.toolCalls.push(call);
    this.#open = { index: index ?? -1, type, text: '', signature: '', ...(call && { call }) };
  }

  #delta({ index, delta }: Event): void {
    const open = this.#open;
    if (!open || index !== open.index) {
      this.#complain(`a delta of block ${index}, which is not open`);
      return;
    }
    switch (`${open.type}: ${delta?.type}`) {
      case 'text: text_delta':
        open.text += delta?.text;
        this.#reading.text += delta?.text;
        return;
      case 'thinking: thinking_delta':
        open.text += delta?.thinking;
        this.#reading.reasoning += delta?.thinking;
        return;
      case 'thinking: signature_delta':
        if (open.signature !== '') this.#complain('a second signature');
        open.signature = delta?.signature ?? '';
        return;
      case 'server_tool_use: input_json_delta':
      case 'mcp_tool_use: input_json_delta':
        return;
      case 'tool_use: input_json_delta':
        if (open.call) open.call.arguments += delta?.partial_json;
        return;
      default:
        this.#complain(`a ${delta?.type} in a block of ${open.type}`);
    }
  }

  #stop({ index }: Event): void {
    const open = this.#open;
    if (!open || index !== open.index) {
      this.#complain(`block ${index} is not open`);
      return;
    }
    this.#open = undefined;
    const isProse = open.type === 'text' || open.type === 'thinking';
    if (isProse && open.text === '' && !this.#parted) this.#complain('an empty block, which the API refuses');
    if (open.type !== 'thinking') return;
    if (open.signature === '') this.#complain('thinking without a signature');
    else if (!signedBy(open.signature).startsWith(open.text))
      this.#complain('thinking with the signature of another');
  }

  #finish({ delta, usage }: Event): void {
    if (this.#open) this.#complain('a stop reason within a block');
    if (this.#uses.size > 0) this.#complain('a tool of the provider without its result');
    if (typeof usage?.output_tokens !== 'number') this.#complain('a stop reason without a report');
    this.#reading.finish = finishReasonOf(String(delta?.stop_reason));
    this.#reading.usage = usage;
  }

  #advise(advisory: Record<string, unknown>): void {
    const reading = this.#reading;
    if (!this.#begun) this.#complain('an advisory before the message');
    reading.advisories.push(advisory);
    const isCancel = advisory.type === 'ToolCallCancel';
    const call = reading.toolCalls.findLast(({ id }) => isCancel && id === advisory.id);
    if (call) this.#cancelled.add(call);
  }

  #complain(what: string): void {
    this.#reading.violations.push(what);
  }
}
