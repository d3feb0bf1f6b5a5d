import { expect, onTestFinished } from 'vitest';
import { relay } from '../../../../src/proxy/run/relay.ts';
import { createUndiciTransport } from '../../../../src/proxy/upstream/undici-transport.ts';
import { deltasOf } from '../../../provider/deltas.ts';
import { usageOf } from '../../../provider/events.ts';
import { type Provider, startProvider } from '../../../provider/provider.ts';
import type { CompletionRequest } from '../../../provider/request.ts';
import type { Plan } from '../../../provider/script.ts';
import { startReplica } from '../../../replica.ts';
import { readStream, type StreamReading } from '../../../simulation/stream-reading.ts';
import { mannersOf } from './fixture-plan.ts';
import type { Fixture } from './fixtures/fixture.ts';

/** What a client got, and the requests upstream for it. */
export interface Answer {
  readonly status: number;
  readonly stream: StreamReading;
  /** Of the `data:` events, including `[DONE]`. */
  readonly payloads: readonly string[];
  readonly requests: readonly Asked[];
}

const CHAT_COMPLETIONS = '/v1/chat/completions';

interface Asked {
  readonly path: string;
  readonly body: CompletionRequest & Readonly<Record<string, unknown>>;
}

/** A replica between a client and a provider that behaves like a fixture, each with sockets of its own. */
export class Conversation {
  readonly #fixture: Fixture;
  readonly #provider: Provider;
  readonly #api: string;
  readonly #plans = new Map<string, Plan>();

  private constructor(fixture: Fixture, provider: Provider, api: string) {
    this.#fixture = fixture;
    this.#provider = provider;
    this.#api = api;
    provider.respond(({ body }) => this.#plans.get(questionOf(body as CompletionRequest)));
  }

  /** `upstream`: more of the upstream's configuration. Closed when the test ends. */
  static async begin(
    fixture: Fixture,
    upstream: object = { dialect: fixture.dialect },
  ): Promise<Conversation> {
    const provider = await startProvider();
    onTestFinished(() => provider.close());
    const transport = createUndiciTransport();
    onTestFinished(() => transport.close());
    const { api } = await startReplica(
      {
        upstreams: { provider: { base_url: provider.url, ...upstream } },
        recovery: { backoff_ms: 1, backoff_max_ms: 1 },
      },
      { relay, transport },
    );
    return new Conversation(fixture, provider, api);
  }

  /** `more`: additional fields of the request. Ask each question only once. */
  async ask(question: string, plan: Partial<Plan> = {}, more: object = {}): Promise<Answer> {
    const { parts } = this.#fixture;
    this.#plans.set(question, { parts, ...mannersOf(this.#fixture), ...plan });
    const response = await fetch(this.#api + CHAT_COMPLETIONS, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer the client' },
      body: JSON.stringify(this.request(question, more)),
    });
    const body = await response.text();
    return {
      status: response.status,
      stream: readStream(body, { reportsAlong: this.#fixture.reportsAlong === true }),
      payloads: [...body.matchAll(/^data: (.*)$/gm)].map(([, payload = '']) => payload),
      requests: this.#provider.requests
        // Requests that resume or stop a kept answer don't ask a question.
        .filter(({ method }) => method === 'POST')
        .map(({ path, body: asked }) => ({ path, body: asked as Asked['body'] }))
        .filter(({ body: asked }) => questionOf(asked) === question),
    };
  }

  request(question: string, more: object = {}) {
    const { model, request } = this.#fixture;
    return {
      model,
      messages: [{ role: 'user', content: question }],
      stream: true,
      stream_options: { include_usage: true },
      ...request,
      ...more,
    };
  }

  /** The provider's payloads in an answer with this id and time, as a client must get them. */
  expected(question: string, { id, created }: { id: string; created: number }): readonly string[] {
    const { accent, parts, model, forwarded } = this.#fixture;
    const deltas = deltasOf(parts, {});
    const usage = usageOf(this.request(question) as CompletionRequest, deltas);
    const { events } = accent.tell({ deltas, finish: 'stop' }, { id, model, created }, usage);
    const payloads = events.flatMap((event) => /^data: (.*)$/m.exec(event)?.[1] ?? []);
    return forwarded?.(payloads) ?? payloads;
  }

  /** The number of events that the provider sends before the finish reason. */
  get places(): number {
    const { accent, parts, model } = this.#fixture;
    const said = { deltas: deltasOf(parts, {}), finish: 'stop' };
    return accent.tell(said, { id: 'id', model, created: 0 }, undefined).finished_after - 1;
  }
}

/** Expects the answer to be that of an uncut stream in everything that an application can see. */
export function expectWhole({ status, stream, payloads }: Answer, { parts }: Fixture): void {
  const said = (pick: (part: Fixture['parts'][number]) => string) => parts.map(pick).join('');
  expect(status).toBe(200);
  expect(stream.violations).toEqual([]);
  expect(stream.error).toBeUndefined();
  expect(stream.text).toBe(said((part) => ('text' in part ? part.text : '')));
  expect(stream.reasoning).toBe(said((part) => ('reasoning' in part ? part.reasoning : '')));
  expect(stream.finish).toBe('stop');
  expect(stream.done).toBe(true);
  expect(payloads.some((payload) => /"usage":\{/.test(payload))).toBe(true);
}

const questionOf = ({ messages }: CompletionRequest): string => String(messages[0]?.content);
