import { EventEmitter, once } from 'node:events';
import { text } from 'node:stream/consumers';
import { answer, plain } from './answer.ts';
import type { AnyRequest, AnyResponse, Channel } from './channel.ts';
import type { Fault } from './fault.ts';
import { type Generation, KeptAnswers, type Reattached, restOf as restOfKept } from './kept-answers.ts';
import { PromptCache } from './prompt-cache.ts';
import type { RecordedRequest } from './recorded-request.ts';
import type { CompletionRequest } from './request.ts';
import { Runs } from './runs.ts';
import type { Continuation, Plan } from './script.ts';
import { type Listening, listen, type Protocol } from './server.ts';
import { isSurvived, type Step } from './steps.ts';
import { type Gate, type Pace, tell } from './telling.ts';
import { PROVIDER_WIRES, wireAt } from './wires/registry.ts';
import { type Background, Backgrounds, restOf } from './wires/responses-background.ts';

export interface ProviderOptions {
  /** `http1` by default. */
  readonly protocol?: Protocol;
  /** 0 by default: any free port of 127.0.0.1. */
  readonly port?: number;
  /** Plans by requested model; `*` stands for every other model. */
  readonly scripts?: Readonly<Record<string, Plan>>;
  /** `true` by default; a soak test can't keep millions of requests. */
  readonly record?: boolean;
}

/** Chooses the plan for one request ahead of everything else; `undefined` leaves it to the queue and the scripts. */
export type Respond = (request: RecordedRequest) => Plan | undefined;

export async function startProvider(options: ProviderOptions = {}): Promise<Provider> {
  const provider = new Provider(options);
  await provider.start();
  return provider;
}

/** An OpenAI-compatible provider that says what it is scripted to say, and breaks where it is scripted to break. */
export class Provider {
  readonly requests: RecordedRequest[] = [];
  readonly #options: ProviderOptions;
  readonly #runs: Runs;
  readonly #backgrounds = new Backgrounds();
  readonly #kept = new KeptAnswers();
  readonly #cache = new PromptCache();
  readonly #changes = new EventEmitter();
  readonly #mistakes: unknown[] = [];
  #listening: Listening | undefined;
  #respond: Respond = () => undefined;
  #serial = 0;

  constructor(options: ProviderOptions) {
    this.#options = options;
    this.#runs = new Runs(({ model }) => options.scripts?.[model] ?? options.scripts?.['*']);
  }

  async start(): Promise<void> {
    const { protocol = 'http1', port = 0 } = this.#options;
    this.#listening = await listen(protocol, port, (request, response, channel) => {
      this.#handle(request, response, channel).catch((mistake: unknown) => {
        this.#mistakes.push(mistake);
        response.destroy();
      });
    });
  }

  get port(): number {
    return this.#server.port;
  }

  /** The base URL, ending in `/v1`. */
  get url(): string {
    return `${this.#server.origin}/v1`;
  }

  /** The certificate of the authority to trust, in PEM, if the protocol uses TLS. */
  get ca(): string | undefined {
    return this.#server.ca;
  }

  /** Queues a plan for the next run that begins. */
  next(script: Plan, faults?: readonly (Fault | undefined)[], continuation?: Continuation): void {
    this.#runs.queue({ ...script, ...(faults && { faults }), ...(continuation && { continuation }) });
  }

  respond(respond: Respond): void {
    this.#respond = respond;
  }

  /** The answers kept for clients that lose their connection, oldest first. */
  get generations(): readonly Generation[] {
    return this.#kept.begun;
  }

  /** Resolves once this many requests have arrived in total. */
  waitForRequests(count: number): Promise<void> {
    return this.#until(() => this.requests.length >= count);
  }

  /** Resolves once clients have left this many answers in total. */
  waitForAborts(count: number): Promise<void> {
    return this.#until(
      () => this.requests.filter((request) => request.aborted_at_ms !== undefined).length >= count,
    );
  }

  /** Breaks every connection. Rejects if a fault couldn't be performed, such as a GOAWAY over HTTP/1.1. */
  async close(): Promise<void> {
    await this.#server.close();
    if (this.#mistakes.length > 0) throw new AggregateError(this.#mistakes, 'the provider made mistakes');
  }

  get #server(): Listening {
    if (!this.#listening) throw new Error('the provider was not started');
    return this.#listening;
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) await once(this.#changes, 'change');
  }

  async #handle(request: AnyRequest, response: AnyResponse, channel: Channel): Promise<void> {
    const { pathname: path, search } = new URL(request.url ?? '/', 'http://provider');
    if (path === '/v1/echo') return echo(request, response);
    const recorded = await this.#record(request, path, search).catch(() => undefined);
    // A client that leaves in the middle of its own request isn't our mistake.
    if (!recorded) return;
    response.once('close', () => {
      if (!response.writableEnded && !channel.was_cut) recorded.aborted_at_ms = Date.now();
      this.#changes.emit('change');
    });
    const { steps, pace, told, gate } = this.#answer(recorded);
    if ((await tell(steps, channel, pace, recorded.sent, gate)) && response.statusCode === 200) told();
  }

  async #record(request: AnyRequest, path: string, search: string): Promise<RecordedRequest> {
    const recorded: RecordedRequest = {
      method: request.method ?? '',
      path,
      search,
      headers: request.headers,
      body: parsed(await text(request)),
      protocol: request.httpVersionMajor === 2 ? 'http/2' : 'http/1.1',
      at_ms: Date.now(),
      sent: { bytes: 0 },
      attempt: 0,
      cached: undefined,
      aborted_at_ms: undefined,
    };
    if (this.#options.record ?? true) this.requests.push(recorded);
    this.#changes.emit('change');
    return recorded;
  }

  #answer(recorded: RecordedRequest): Told {
    const { method, path } = recorded;
    const wire = method === 'POST' ? wireAt(path) : undefined;
    if (wire) return this.#complete(recorded, PROVIDER_WIRES[wire].request(recorded.body));
    const background = method === 'GET' ? this.#backgrounds.at(path) : undefined;
    if (background) return this.#goOn(recorded, background);
    const cancelled = method === 'POST' ? this.#backgrounds.cancelledAt(path) : undefined;
    if (cancelled) return { steps: plain(200, cancelled), pace: {}, told: () => {} };
    const reattached = this.#kept.at(recorded);
    if (reattached) return this.#reattach(recorded, reattached);
    return { steps: this.#otherwise(method, path), pace: {}, told: () => {} };
  }

  #complete(recorded: RecordedRequest, request: CompletionRequest | null): Told {
    if (!request) return refused(400, 'invalid_request_error', 'This is no completion request.');
    const run = this.#runs.attempt(request, this.#respond(recorded));
    if (!run) return refused(404, 'model_not_found', `The model \`${request.model}\` does not exist.`);
    const { plan, attempt, told } = run;
    recorded.attempt = attempt;
    this.#serial += 1;
    const created = Math.floor(recorded.at_ms / 1000);
    recorded.cached = wireAt(recorded.path) === 'messages' ? this.#cache.read(recorded.body) : undefined;
    const { path, cached } = recorded;
    const occasion = { attempt, serial: this.#serial, created, path, cached };
    this.#backgrounds.keep({ plan, request, occasion });
    const steps = answer(plan, request, occasion);
    const kept = this.#kept.begin(recorded, plan, request, occasion);
    if (kept) return { steps: kept.announced(steps), pace: kept.pace, told, gate: kept.gate(0) };
    const fault = plan.faults?.[attempt - 1];
    return { steps, pace: plan, told: fault && !isSurvived(fault) ? () => {} : told };
  }

  #reattach(recorded: RecordedRequest, { generation, from = 0, steps = [] }: Reattached): Told {
    if (!generation) return { steps, pace: {}, told: () => {} };
    const run = this.#runs.attempt(generation.request, generation.plan);
    recorded.attempt = run?.attempt ?? 0;
    return {
      steps: restOfKept(generation, from, recorded.attempt),
      pace: generation.pace,
      told: () => {},
      gate: generation.gate(from),
    };
  }

  #goOn(recorded: RecordedRequest, background: Background): Told {
    const run = this.#runs.attempt(background.request, background.plan);
    const after = new URLSearchParams(recorded.search).get('starting_after') ?? '-1';
    recorded.attempt = run?.attempt ?? 0;
    return {
      steps: restOf(background, Number(after), recorded.attempt),
      pace: background.plan,
      told: () => {},
    };
  }

  #otherwise(method: string, path: string): readonly Step[] {
    switch (`${method} ${path}`) {
      case 'GET /v1/models': {
        const models = Object.keys(this.#options.scripts ?? {}).filter((model) => model !== '*');
        return plain(200, {
          object: 'list',
          data: models.map((id) => ({ id, object: 'model', created: 0 })),
        });
      }
      case 'POST /v1/embeddings': {
        const data = [{ object: 'embedding', index: 0, embedding: [0.25, -0.5, 0.75] }];
        return plain(200, {
          object: 'list',
          data,
          model: 'embedding',
          usage: { prompt_tokens: 1, total_tokens: 1 },
        });
      }
      case 'GET /v1/stall':
        return [{ kind: 'hold', every_ms: 0 }];
      default:
        return refused(404, 'invalid_request_error', `Unknown request URL: ${method} ${path}.`).steps;
    }
  }
}

interface Told {
  readonly steps: readonly Step[];
  readonly pace: Pace;
  /** Call once the answer itself, and not a refusal, has been sent to its end. */
  readonly told: () => void;
  readonly gate?: Gate;
}

function refused(status: number, code: string, message: string): Told {
  const error = { message, type: 'invalid_request_error', param: null, code };
  return { steps: plain(status, { error }), pace: {}, told: () => {} };
}

/** Streams the request's body back as it arrives. */
function echo(request: AnyRequest, response: AnyResponse): void {
  response.setHeader('content-type', request.headers['content-type'] ?? 'application/octet-stream');
  request.pipe(response as NodeJS.WritableStream);
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}
