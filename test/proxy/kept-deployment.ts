import { onTestFinished } from 'vitest';
import { relay } from '../../src/proxy/run/relay.ts';
import { createUndiciTransport } from '../../src/proxy/upstream/undici-transport.ts';
import type { Fault } from '../provider/fault.ts';
import { type Provider, startProvider } from '../provider/provider.ts';
import type { RecordedRequest } from '../provider/recorded-request.ts';
import { PROMPT_END } from '../provider/request.ts';
import type { Plan } from '../provider/script.ts';
import { type Replica, startReplica } from '../replica.ts';
import { readStream, type StreamReading } from '../simulation/stream-reading.ts';

/** What a client got, and the requests to the provider for it. */
export interface Answer {
  readonly status: number;
  readonly stream: StreamReading;
  readonly requests: readonly RecordedRequest[];
  /** Their methods and, except for requests for a new answer, their paths. */
  readonly asked: readonly string[];
}

export interface Asking {
  readonly path?: '/v1/chat/completions' | '/v1/completions';
  readonly headers?: Readonly<Record<string, string>>;
  /** Additional fields of the request. */
  readonly more?: object;
  readonly signal?: AbortSignal;
}

/** A replica between clients and a provider that keeps answers, each with sockets of its own. */
export class KeptDeployment {
  readonly provider: Provider;
  readonly replica: Replica;
  #questions = 0;

  private constructor(provider: Provider, replica: Replica) {
    this.provider = provider;
    this.replica = replica;
  }

  /** Closed when the test ends. `upstream`: its configuration. */
  static async begin(upstream: object, more: object = {}): Promise<KeptDeployment> {
    const provider = await startProvider();
    onTestFinished(() => provider.close());
    const transport = createUndiciTransport();
    onTestFinished(() => transport.close());
    const replica = await startReplica(
      {
        upstreams: { provider: { base_url: provider.url, ...upstream } },
        recovery: { backoff_ms: 1, backoff_max_ms: 1 },
        ...more,
      },
      { relay, transport },
    );
    return new KeptDeployment(provider, replica);
  }

  /** Asks a new question. Only one at a time. */
  async ask(plan: Plan, faults: readonly (Fault | null)[] = [], asking: Asking = {}): Promise<Answer> {
    const before = this.provider.requests.length;
    const response = await this.open(plan, faults, asking);
    const body = await response.text();
    const requests = this.provider.requests.slice(before);
    return {
      status: response.status,
      stream: readStream(body, { live: asking.headers?.['holdfast-events'] !== undefined }),
      requests,
      asked: requests.map(({ method, path, search }) =>
        method === 'POST' ? method : `${method} ${path}${search}`,
      ),
    };
  }

  open(plan: Plan, faults: readonly (Fault | null)[] = [], asking: Asking = {}): Promise<Response> {
    const { path = '/v1/chat/completions', headers, more, signal } = asking;
    const question = `Tell me ${this.#questions++}${PROMPT_END}`;
    this.provider.next({ ...plan, faults });
    const asked =
      path === '/v1/completions' ? { prompt: question } : { messages: [{ role: 'user', content: question }] };
    return fetch(this.replica.api + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer the client', ...headers },
      body: JSON.stringify({
        model: 'm',
        stream: true,
        stream_options: { include_usage: true },
        ...asked,
        ...more,
      }),
      ...(signal && { signal }),
    });
  }
}

/** Everything that an application can see of an answer. */
export const seen = ({ status, stream }: Answer) => {
  const { text, reasoning, toolCalls, finish, done, usage, error, violations } = stream;
  return { status, text, reasoning, toolCalls, finish, done, usage, error, violations };
};
