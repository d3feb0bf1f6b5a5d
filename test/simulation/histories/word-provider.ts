import { sleep, type Time } from '../../../src/lib/time.ts';
import {
  type Transport,
  TransportFailure,
  type TransportRequest,
  type TransportResponse,
} from '../../../src/proxy/upstream/transport.ts';

const CHUNK = { object: 'chat.completion.chunk', created: 1_700_000_000, model: 'model' };

/** One word of an answer: its place, and the request that produced it. */
export const WORD = /(\d+):(\d+) /g;

export interface WordPlan {
  /** The number of words in an answer. */
  readonly words: number;
  /** The time between two words. */
  readonly pace_ms: number;
  /** The first request's connection breaks after this many words. */
  readonly cut_after?: number | undefined;
  /** The answer ends with a tool call. */
  readonly calls: boolean;
}

/**
 * A provider that never repeats itself: each word names the request that produced it, so an answer assembled from two
 * requests can't pass for one of them. It continues a trailing assistant message.
 */
export class WordProvider {
  readonly plan: WordPlan;
  requests = 0;

  constructor(plan: WordPlan) {
    this.plan = plan;
  }

  /** The provider's transport for one replica. */
  transport(time: Time): Transport {
    return { open: (request) => this.#open(request, time), close: async () => {} };
  }

  async #open({ body, signal }: TransportRequest, time: Time): Promise<TransportResponse> {
    const attempt = ++this.requests;
    const { messages } = JSON.parse(String(body)) as {
      messages: readonly { readonly role: string; readonly content: string }[];
    };
    const last = messages.at(-1);
    const prefix = last?.role === 'assistant' ? last.content : '';
    const said = [...`${prefix} `.matchAll(WORD)].length;
    const { words, pace_ms, cut_after, calls } = this.plan;
    return {
      status: 200,
      headers: { 'content-type': 'text/event-stream' },
      body: {
        async consume(take) {
          const send = async (choice: object): Promise<void> => {
            await sleep(time, pace_ms, signal);
            if (signal.aborted) throw new TransportFailure('ABORTED');
            const chunk = {
              id: `chatcmpl-${attempt}`,
              ...CHUNK,
              choices: [{ index: 0, finish_reason: null, ...choice }],
            };
            await take(Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`));
          };
          for (let place = said; place < words; place++) {
            if (attempt === 1 && place === cut_after) throw new TransportFailure('ECONNRESET');
            const space = place === said && prefix !== '' && !prefix.endsWith(' ') ? ' ' : '';
            await send({ delta: { content: `${space}${place}:${attempt} ` } });
          }
          if (calls) {
            const call = { index: 0, id: `call_${attempt}`, type: 'function' };
            await send({ delta: { tool_calls: [{ ...call, function: { name: 'act', arguments: '' } }] } });
            for (const part of ['{"by"', `:${attempt}}`])
              await send({ delta: { tool_calls: [{ index: 0, function: { arguments: part } }] } });
          }
          await send({ delta: {}, finish_reason: calls ? 'tool_calls' : 'stop' });
          await take(Buffer.from('data: [DONE]\n\n'));
        },
      },
    };
  }
}
