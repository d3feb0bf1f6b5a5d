import type { ChunkDelta, ToolCallDelta } from '../deltas.ts';
import type { Envelope, EventStream, TokenUsage } from '../events.ts';
import type { BadFinish, ErrorEvent } from '../fault.ts';
import type { Utterance } from '../limits.ts';

interface Payload {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** The name of an event is its type. */
export const responsesEvent = (payload: Payload): string =>
  `event: ${payload.type}\ndata: ${JSON.stringify(payload)}\n\n`;

/** A call in progress; there may be several. */
interface OpenCall {
  readonly key: { readonly id: string | undefined; readonly index: number | undefined };
  readonly item: { readonly id: string; readonly call_id: string; readonly name: string };
  readonly output_index: number;
  text: string;
}

/** A message or a thought in progress. */
interface OpenItem {
  readonly kind: 'output_text' | 'refusal' | 'summary_text' | 'reasoning_text';
  readonly id: string;
  readonly output_index: number;
  text: string;
}

/** Words an answer as the events of a response, numbered and nested like OpenAI's. */
class Telling {
  readonly events: string[] = [];
  readonly output: object[] = [];
  readonly #envelope: Envelope;
  #sequence = 0;
  #items = 0;
  #open: OpenItem | undefined;
  #calls: OpenCall[] = [];

  constructor(envelope: Envelope) {
    this.#envelope = envelope;
    const queued = responseOf(envelope, 'queued');
    const response = responseOf(envelope, 'in_progress');
    this.send({ type: 'response.created', response: envelope.background ? queued : response });
    if (envelope.background) this.send({ type: 'response.queued', response: queued });
    this.send({ type: 'response.in_progress', response });
  }

  send({ type, ...fields }: Payload): void {
    this.events.push(responsesEvent({ type, sequence_number: this.#sequence++, ...fields }));
  }

  say({ content, refusal, reasoning_content, reasoning, tool_calls }: ChunkDelta): void {
    if (reasoning_content !== undefined) this.#tell('summary_text', reasoning_content);
    if (reasoning !== undefined) this.#tell('reasoning_text', reasoning);
    if (content !== undefined) this.#tell('output_text', content);
    if (refusal !== undefined) this.#tell('refusal', refusal);
    if (tool_calls) this.#call(tool_calls[0]);
  }

  /** `isCut`: a limit has cut the last item. */
  end(isCut: boolean): void {
    const last = this.#calls.at(-1);
    for (const call of this.#calls) this.#endCall(call, isCut && call === last);
    this.#calls = [];
    this.#endItem(isCut);
  }

  #tell(kind: OpenItem['kind'], text: string): void {
    if (this.#open?.kind !== kind || this.#calls.length > 0) {
      this.end(false);
      this.#open = this.#begin(kind);
    }
    const open = this.#open;
    open.text += text;
    const names = NAMES[kind];
    const extra = kind === 'output_text' ? { logprobs: [] } : {};
    this.send({ type: `${names.text}.delta`, ...partOf(open), delta: text, ...extra, obfuscation: 'x7Kp' });
  }

  #begin(kind: OpenItem['kind']): OpenItem {
    const output_index = this.#items++;
    const isMessage = kind === 'output_text' || kind === 'refusal';
    const id = `${isMessage ? 'msg' : 'rs'}_${this.#envelope.id}_${output_index}`;
    const item = isMessage
      ? { id, type: 'message', status: 'in_progress', content: [], role: 'assistant' }
      : { id, type: 'reasoning', encrypted_content: `begun by ${id}`, summary: [] };
    this.send({ type: 'response.output_item.added', output_index, item });
    const open = { kind, id, output_index, text: '' };
    this.send({ type: `${NAMES[kind].part}.added`, ...partOf(open), part: partWith(kind, '') });
    return open;
  }

  #endItem(isCut: boolean): void {
    const open = this.#open;
    this.#open = undefined;
    if (!open) return;
    const { kind, id, output_index, text } = open;
    const { text: name, part, list } = NAMES[kind];
    const extra = kind === 'output_text' ? { logprobs: [] } : {};
    const field = kind === 'refusal' ? 'refusal' : 'text';
    this.send({ type: `${name}.done`, ...partOf(open), [field]: text, ...extra });
    this.send({ type: `${part}.done`, ...partOf(open), part: partWith(kind, text) });
    const own = { [list]: [partWith(kind, text)] };
    const item =
      list === 'content' && kind !== 'reasoning_text'
        ? { id, type: 'message', status: isCut ? 'incomplete' : 'completed', ...own, role: 'assistant' }
        : { id, type: 'reasoning', encrypted_content: `thought by ${id}`, summary: [], ...own };
    this.#done(output_index, item);
  }

  #call(fragment: ToolCallDelta): void {
    this.#endItem(false);
    const { index, id, function: said } = fragment;
    const isOf = ({ key }: OpenCall) => (id === undefined ? key.index === index : key.id === id);
    const known = this.#calls.findLast(isOf);
    const call = known ?? this.#beginCall(fragment);
    if (said.arguments === '') return;
    call.text += said.arguments;
    const { output_index, item } = call;
    const type = 'response.function_call_arguments.delta';
    this.send({ type, item_id: item.id, output_index, delta: said.arguments, obfuscation: 'q' });
  }

  #beginCall({ index, id, function: { name = '' } }: ToolCallDelta): OpenCall {
    // A call that reuses the index of another one ends it, and so does one that begins after arguments.
    const isLater = index === undefined || this.#calls.some(({ text }) => text !== '');
    const before = this.#calls.filter(({ key }) => isLater || key.index === index);
    for (const call of before) this.#endCall(call, false);
    this.#calls = this.#calls.filter((call) => !before.includes(call));
    const output_index = this.#items++;
    const item = { id: `fc_${this.#envelope.id}_${output_index}`, call_id: id ?? '', name };
    const added = { type: 'function_call', status: 'in_progress', arguments: '', ...item };
    this.send({ type: 'response.output_item.added', output_index, item: added });
    const call = { key: { id, index }, item, output_index, text: '' };
    this.#calls.push(call);
    return call;
  }

  #endCall({ item, output_index, text }: OpenCall, isCut: boolean): void {
    const type = 'response.function_call_arguments.done';
    if (!isCut) this.send({ type, item_id: item.id, output_index, arguments: text, name: item.name });
    const status = isCut ? 'incomplete' : 'completed';
    this.#done(output_index, { type: 'function_call', status, arguments: text, ...item });
  }

  #done(output_index: number, item: object): void {
    this.send({ type: 'response.output_item.done', output_index, item });
    this.output[output_index] = item;
  }
}

const NAMES = {
  output_text: { text: 'response.output_text', part: 'response.content_part', list: 'content' },
  refusal: { text: 'response.refusal', part: 'response.content_part', list: 'content' },
  reasoning_text: { text: 'response.reasoning_text', part: 'response.content_part', list: 'content' },
  summary_text: {
    text: 'response.reasoning_summary_text',
    part: 'response.reasoning_summary_part',
    list: 'summary',
  },
} as const;

const partOf = ({ kind, id, output_index }: OpenItem) => ({
  item_id: id,
  output_index,
  [kind === 'summary_text' ? 'summary_index' : 'content_index']: 0,
});

function partWith(kind: OpenItem['kind'], text: string): object {
  if (kind === 'output_text') return { type: kind, annotations: [], logprobs: [], text };
  return kind === 'refusal' ? { type: kind, refusal: text } : { type: kind, text };
}

export const responseOf = (
  { id, created, model, background = false }: Envelope,
  status: string,
  more: object = {},
): object => ({
  id: `resp_${id}`,
  object: 'response',
  background,
  created_at: created,
  status,
  error: null,
  incomplete_details: null,
  instructions: null,
  model,
  output: [],
  parallel_tool_calls: true,
  tool_choice: 'auto',
  tools: [],
  usage: null,
  ...more,
});

export const responsesUsage = ({ prompt_tokens, completion_tokens, total_tokens }: TokenUsage): object => ({
  input_tokens: prompt_tokens,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: completion_tokens,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens,
});

const INCOMPLETE: Readonly<Record<string, string>> = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
};

export function responsesEvents(
  { deltas, finish }: Utterance,
  envelope: Envelope,
  usage: TokenUsage,
): EventStream {
  const telling = new Telling(envelope);
  for (const delta of deltas) telling.say(delta);
  const reason = INCOMPLETE[finish];
  telling.end(reason !== undefined);
  const report = { output: telling.output, usage: responsesUsage(usage) };
  if (reason === undefined)
    telling.send({ type: 'response.completed', response: responseOf(envelope, 'completed', report) });
  else {
    const response = responseOf(envelope, 'incomplete', { ...report, incomplete_details: { reason } });
    telling.send({ type: 'response.incomplete', response });
  }
  return { events: telling.events, finished_after: telling.events.length };
}

const NUMBER = { sequence_number: 900 };

const failed = (envelope: Envelope, code: string, message: string): string =>
  responsesEvent({
    type: 'response.failed',
    ...NUMBER,
    response: responseOf(envelope, 'failed', { error: { code, message } }),
  });

/** The shape that several servers of this API use. */
export function responsesErrors(
  kind: ErrorEvent,
  envelope: Envelope,
  retry_after_s: number | undefined,
): readonly string[] {
  const message = 'The server had an error while processing your request. Sorry about that!';
  switch (kind) {
    case 'error_openai': {
      const error = { type: 'server_error', code: 'server_error', message, param: null };
      return [responsesEvent({ type: 'error', ...NUMBER, error }), failed(envelope, 'server_error', message)];
    }
    case 'error_openrouter':
      return [failed(envelope, 'server_error', 'Provider disconnected unexpectedly')];
    case 'error_vllm':
      return [
        responsesEvent({ type: 'error', ...NUMBER, code: 'internal_error', message, param: null }),
        'data: [DONE]\n\n',
      ];
    case 'error_tgi':
      return [`data: ${JSON.stringify({ error: { message, http_status_code: 422 } })}\n\n`];
    case 'error_ollama':
      return [];
    case 'error_gemini':
      return [`${JSON.stringify({ error: { code: 503, message, status: 'UNAVAILABLE' } }, null, 2)}\n`];
    case 'error_anthropic': {
      const error = { type: 'overloaded_error', message: 'Overloaded' };
      return [`event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`];
    }
    case 'error_string':
      return [`data: ${JSON.stringify({ error: 'The service is currently unavailable' })}\n\n`];
    case 'error_rate_limited': {
      const hint = retry_after_s === undefined ? '' : ` Please try again in ${retry_after_s}s.`;
      return [failed(envelope, 'rate_limit_exceeded', `Rate limit reached for requests per minute.${hint}`)];
    }
    case 'error_quota': {
      const error = { type: 'insufficient_quota', code: 'insufficient_quota', message: 'You exceeded it.' };
      return [
        responsesEvent({ type: 'error', ...NUMBER, error }),
        failed(envelope, 'insufficient_quota', 'You exceeded it.'),
      ];
    }
    case 'error_own':
      throw new Error('only a script with an accent has an error of its own');
  }
}

export function responsesBadFinish(kind: BadFinish, envelope: Envelope): readonly string[] {
  const reason = kind.slice('finish_'.length);
  const response = responseOf(envelope, 'incomplete', { incomplete_details: { reason } });
  return [responsesEvent({ type: 'response.incomplete', ...NUMBER, response })];
}

/** An event whose JSON is cut off, but which ends properly as an event. */
export const responsesMalformed = (): string => {
  const place = { item_id: 'msg_lost', output_index: 0, content_index: 0 };
  const event = responsesEvent({ type: 'response.output_text.delta', ...NUMBER, ...place, delta: 'lost' });
  return `${event.slice(0, -6)}\n\n`;
};

/** It has a sequence number, but isn't one of the events that a client can resume from. */
export const KEEPALIVE = responsesEvent({ type: 'keepalive', ...NUMBER });
