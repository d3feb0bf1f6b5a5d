import OpenAI from 'openai';
import { resumable } from '../../src/client/index.ts';
import { requestOf } from './questions.ts';

/** What a client has received when it stops reading. */
export interface Heard {
  /** The body of the stream. For an SDK, it is rebuilt from the parsed events. */
  readonly body: string;
  /** The error that the client raised in place of an end. */
  readonly error?: unknown;
  readonly status?: number;
  /** The slot of the replica that began the answer. */
  readonly served_by: string;
  readonly run: string;
}

/** Asks one question and reads the answer until it ends or breaks. Calls `onBegun` at the first piece. */
export type Ask = (question: string, onBegun: () => void) => Promise<Heard>;

const API_KEY = 'client-key';
/** Longer than anything in a rehearsal takes. */
const ANSWER_MAX_MS = 300_000;

/** A client that uses `fetch` without an SDK. */
export function fetching(url: string, fetch: typeof globalThis.fetch = globalThis.fetch): Ask {
  return async (question, onBegun) => {
    let response: Response | undefined;
    let body = '';
    let error: unknown;
    try {
      response = await fetch(`${url}/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${API_KEY}` },
        body: JSON.stringify(requestOf(question)),
        signal: AbortSignal.timeout(ANSWER_MAX_MS),
      });
      for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        if (body === '') onBegun();
        body += text;
      }
    } catch (caught) {
      error = caught;
    }
    const { status, headers } = response ?? {};
    return {
      body,
      ...(error !== undefined && { error }),
      ...(status !== undefined && { status }),
      served_by: headers?.get('x-served-by') ?? '',
      run: headers?.get('holdfast-run-id') ?? '',
    };
  };
}

/** The wrapper with a single address. */
export const resuming = (url: string): Ask => fetching(url, resumable());

/** The wrapper with the addresses of all replicas. */
export const resumingAt = (url: string, endpoints: readonly string[]): Ask =>
  fetching(url, resumable({ endpoints }));

/** The SDK with its default retries, which it makes only before an answer begins. */
export function openai(url: string): Ask {
  const client = new OpenAI({ baseURL: url, apiKey: API_KEY, timeout: ANSWER_MAX_MS });
  return async (question, onBegun) => {
    let body = '';
    let headers: Headers | undefined;
    let error: unknown;
    try {
      const { data, response } = await client.chat.completions
        .create(requestOf(question) as OpenAI.ChatCompletionCreateParamsStreaming)
        .withResponse();
      headers = response.headers;
      for await (const chunk of data) {
        if (body === '') onBegun();
        body += `data: ${JSON.stringify(chunk)}\n\n`;
      }
      body += 'data: [DONE]\n\n';
    } catch (caught) {
      error = caught;
    }
    return {
      body,
      ...(error !== undefined && { error }),
      ...(headers && { status: 200 }),
      served_by: headers?.get('x-served-by') ?? '',
      run: headers?.get('holdfast-run-id') ?? '',
    };
  };
}
