import { chunksOf, contentOf } from '../provider/reading.ts';

export const chunk = (delta: object, more: object = {}): string =>
  JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: null, ...more }],
  });

export const DONE = '[DONE]';
const FINISH = chunk({}, { finish_reason: 'stop' });

/** The events of an answer with these words. */
export const saying = (...words: readonly string[]): string[] => [
  chunk({ role: 'assistant', content: '' }),
  ...words.map((content) => chunk({ content })),
  FINISH,
  DONE,
];

/** Words with characters of one to four bytes. */
export const words = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => [`w${index} `, 'à ', '満', '🌊'][index % 4] ?? '');

/** The request of a client without an SDK. */
export const request = (more: object = {}): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', authorization: 'Bearer client-key' },
  body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'Tides?' }] }),
  ...more,
});

/** The SSE frame that a caller reads for a payload. On wires with named events, the name is the payload's type. */
export function frameOf(payload: string): string {
  const [, name] = /^\{"type":"([^"]+)"/.exec(payload) ?? [];
  return `${name === undefined ? '' : `event: ${name}\n`}data: ${payload}\n\n`;
}

export const framesOf = (events: readonly string[]): string => events.map(frameOf).join('');

export const textOf = (body: string): string =>
  contentOf(chunksOf(body).filter(({ choices }) => choices !== undefined));
