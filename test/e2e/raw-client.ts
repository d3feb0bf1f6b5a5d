import { type Chunk, callsOf, chunksOf, contentOf, finishOf } from '../provider/reading.ts';

export interface RawAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Unparsed. */
  readonly body: string;
  readonly chunks: readonly Chunk[];
  readonly text: string;
  readonly toolCalls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  readonly finish: string | null | undefined;
  readonly done: boolean;
}

export const streamRequest = (model: string, question: string, more: object = {}) => ({
  model,
  stream: true,
  stream_options: { include_usage: true },
  messages: [{ role: 'user', content: question }],
  ...more,
});

export function post(
  url: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
  signal?: AbortSignal,
  send: typeof fetch = fetch,
): Promise<Response> {
  return send(`${url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer client-key', ...headers },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
}

/** Sends one request without an SDK, to see exactly what came over the wire. Rejects if the response was incomplete. */
export async function rawAnswer(url: string, body: object, signal?: AbortSignal): Promise<RawAnswer> {
  const response = await post(url, body, {}, signal);
  const text = await response.text();
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
  const chunks = isStream ? chunksOf(text) : [];
  const choices = chunks.filter(({ choices }) => choices !== undefined);
  return {
    status: response.status,
    headers: response.headers,
    body: text,
    chunks,
    text: contentOf(choices),
    toolCalls: callsOf(choices),
    finish: finishOf(choices)[0],
    done: text.endsWith('data: [DONE]\n\n'),
  };
}
