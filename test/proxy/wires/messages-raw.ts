/** Events of `/v1/messages` as Anthropic sends them, some of them padded with spaces. */
export const event = (
  payload: { readonly type: string; readonly [field: string]: unknown },
  padding = '',
): string => `event: ${payload.type}\ndata: ${JSON.stringify(payload).slice(0, -1)}${padding}}\n\n`;

export const start = (more: object = {}): string =>
  event({
    type: 'message_start',
    message: {
      model: 'claude-opus-4-6',
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: {
        input_tokens: 11,
        cache_creation_input_tokens: 3,
        cache_read_input_tokens: 5,
        output_tokens: 2,
      },
      ...more,
    },
  });

export const ping = event({ type: 'ping' });
export const blockStart = (index: number, content_block: object): string =>
  event({ type: 'content_block_start', index, content_block }, '      ');
export const blockDelta = (index: number, delta: object): string =>
  event({ type: 'content_block_delta', index, delta }, '  ');
export const blockStop = (index: number): string => event({ type: 'content_block_stop', index }, '    ');

export const textStart = (index: number): string => blockStart(index, { type: 'text', text: '' });
export const text = (index: number, said: string): string =>
  blockDelta(index, { type: 'text_delta', text: said });
export const thinkingStart = (index: number): string =>
  blockStart(index, { type: 'thinking', thinking: '', signature: '' });
export const thinking = (index: number, said: string): string =>
  blockDelta(index, { type: 'thinking_delta', thinking: said });
export const signature = (index: number, said: string): string =>
  blockDelta(index, { type: 'signature_delta', signature: said });
export const toolStart = (index: number, id: string, more: object = {}): string =>
  blockStart(index, { type: 'tool_use', id, name: 'tides', input: {}, ...more });
export const input = (index: number, partial_json: string): string =>
  blockDelta(index, { type: 'input_json_delta', partial_json });

export const end = (stop_reason: string, usage: object = { output_tokens: 40 }, more: object = {}): string =>
  event({ type: 'message_delta', delta: { stop_reason, stop_sequence: null, ...more }, usage });
export const stop = event({ type: 'message_stop' });

/** A complete block of text. */
export const textBlock = (index: number, ...said: readonly string[]): string[] => [
  textStart(index),
  ...said.map((piece) => text(index, piece)),
  blockStop(index),
];

/** A complete call. */
export const toolBlock = (index: number, id: string, json: string): string[] => [
  toolStart(index, id),
  input(index, json),
  blockStop(index),
];

export interface RawEvent {
  readonly type: string;
  readonly index?: number;
  readonly [field: string]: unknown;
}

/** The parsed payloads of a body. */
export const eventsOf = (body: string): RawEvent[] =>
  body
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice('data: '.length)) as RawEvent);
