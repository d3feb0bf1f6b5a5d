import { randomBytes } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { answer, type Occasion, plain } from './answer.ts';
import type { Fault } from './fault.ts';
import type { RecordedRequest } from './recorded-request.ts';
import type { CompletionRequest } from './request.ts';
import type { Plan } from './script.ts';
import { isStreamFault, type Step, streamSteps } from './steps.ts';
import type { Pace } from './telling.ts';
import { PROVIDER_WIRES, wireAt } from './wires/registry.ts';

/**
 * How the provider keeps answers for clients that lose their connection. `llamacpp`: as bytes, under the id in the
 * request's `X-Conversation-Id`. `cloudflare`: as events, under the id in the response's `cf-aig-run-id`.
 */
export interface KeepsAnswers {
  readonly as: 'llamacpp' | 'cloudflare';
  /** How many bytes are kept; older ones are dropped. Default: 4 MiB. */
  readonly ring_bytes?: number;
  /** How long an answer is kept after its end. Default: 300 s. */
  readonly ttl_ms?: number;
}

const RING_BYTES = 4 * 1024 * 1024;
const TTL_MS = 300_000;

/** Faults that end only the connection, not the answer. */
const LOSES_ONLY_THE_CONNECTION: ReadonlySet<Fault['kind']> = new Set([
  'reset',
  'fin_in_chunk',
  'h2_rst',
  'goaway_0_close',
  'goaway_error',
  'tls_cut',
  'clean_eof',
  'silence',
]);

/** An answer in progress, whether or not a client listens. */
export class Generation {
  readonly id: string;
  readonly plan: Plan;
  readonly request: CompletionRequest;
  readonly occasion: Occasion;
  /** Whether a client that knows its id has stopped it. */
  isStopped: boolean = false;
  /** How many bytes have been generated so far. */
  said = 0;
  readonly #events: readonly Buffer[];
  readonly #ring_bytes: number;
  readonly #ttl_ms: number;
  readonly #changes = new EventEmitter().setMaxListeners(0);
  #ended_at_ms: number | undefined;

  constructor(id: string, plan: Plan, keeps: KeepsAnswers, request: CompletionRequest, occasion: Occasion) {
    this.id = id;
    this.plan = plan;
    this.request = request;
    this.occasion = occasion;
    this.#ring_bytes = keeps.ring_bytes ?? RING_BYTES;
    this.#ttl_ms = keeps.ttl_ms ?? TTL_MS;
    const uncut = answer({ ...plan, faults: [] }, request, occasion);
    this.#events = uncut.flatMap((step) => (step.kind === 'send' ? [step.bytes] : []));
    void this.#speak(plan.delay_ms ?? 0);
  }

  /** Its size in bytes once it is complete. */
  get size(): number {
    return this.#events.reduce((sum, { length }) => sum + length, 0);
  }

  /** How many bytes at its beginning have been dropped. */
  get dropped(): number {
    return Math.max(0, this.said - this.#ring_bytes);
  }

  get isEnded(): boolean {
    return this.#ended_at_ms !== undefined;
  }

  get isExpired(): boolean {
    return this.#ended_at_ms !== undefined && Date.now() >= this.#ended_at_ms + this.#ttl_ms;
  }

  /** No client receives it faster than it is generated. */
  get pace(): Pace {
    const { write, delay_ms = 0 } = this.plan;
    return { write: write ?? (delay_ms > 0 ? 'event' : 'whole') };
  }

  /**
   * The steps of the response to the original request, plus the header with the answer's id if the provider chose that.
   */
  announced(steps: readonly Step[]): readonly Step[] {
    if (this.plan.keeps?.as !== 'cloudflare') return steps;
    return steps.map((step) =>
      step.kind === 'head' ? { ...step, headers: { ...step.headers, 'cf-aig-run-id': this.id } } : step,
    );
  }

  stop(): void {
    this.isStopped = true;
    this.#end();
  }

  /** Resolves once it is over, however it ends. */
  async over(): Promise<void> {
    while (!this.isEnded) await once(this.#changes, 'change');
  }

  /** The byte at which an event begins. */
  placeOf(event: number): number {
    return this.#events.slice(0, event).reduce((sum, { length }) => sum + length, 0);
  }

  /** How many of the first `byte` bytes belong to complete events. */
  wholeBefore(byte: number): number {
    const places = this.#events.map((_, event) => this.placeOf(event + 1));
    return Math.max(0, ...places.filter((place) => place <= byte));
  }

  /** What follows that byte: the rest of an event, and whole events. */
  after(byte: number): Buffer[] {
    let skip = byte;
    return this.#events.flatMap((event) => {
      const rest = event.subarray(Math.min(skip, event.length));
      skip -= event.length - rest.length;
      return rest.length > 0 ? [rest] : [];
    });
  }

  /**
   * For a connection that receives the answer from a byte on: waits for the next `length` bytes. Resolves with `false`
   * if they never come.
   */
  gate(from: number): (length: number) => Promise<boolean> {
    let place = from;
    return async (length) => {
      while (this.said < place + length && !this.isEnded) await once(this.#changes, 'change');
      const isThere = this.said >= place + length && place >= this.dropped;
      place += length;
      return isThere;
    };
  }

  async #speak(delay_ms: number): Promise<void> {
    for (const { length } of this.#events) {
      if (delay_ms > 0) await setTimeout(delay_ms);
      if (this.isStopped) return;
      this.said += length;
      this.#changes.emit('change');
    }
    this.#end();
  }

  #end(): void {
    this.#ended_at_ms ??= Date.now();
    this.#changes.emit('change');
  }
}

/** The outcome of a request about a kept answer. */
export interface Reattached {
  readonly generation?: Generation;
  /** In bytes. */
  readonly from?: number;
  readonly steps?: readonly Step[];
}

export class KeptAnswers {
  /** All answers ever begun, in order. */
  readonly begun: Generation[] = [];
  readonly #kept = new Map<string, Generation>();

  /** Returns `undefined` if the provider doesn't keep the answer to this request. */
  begin(
    { headers }: RecordedRequest,
    plan: Plan,
    request: CompletionRequest,
    occasion: Occasion,
  ): Generation | undefined {
    const { keeps } = plan;
    if (!keeps || !request.stream) return undefined;
    const told = headers['x-conversation-id'];
    const id = keeps.as === 'cloudflare' ? randomBytes(32).toString('hex') : String(told ?? '');
    if (id === '') return undefined;
    const fault = plan.faults?.[occasion.attempt - 1];
    if (fault && !LOSES_ONLY_THE_CONNECTION.has(fault.kind)) return undefined;
    this.#kept.get(id)?.stop();
    const generation = new Generation(id, plan, keeps, request, occasion);
    this.begun.push(generation);
    this.#kept.set(id, generation);
    return generation;
  }

  /** Returns `undefined` if the request isn't about a kept answer. */
  at({ method, path, search }: RecordedRequest): Reattached | undefined {
    const query = new URLSearchParams(search);
    const [, run] = /\/run\/([^/]+)\/resume$/.exec(path) ?? [];
    if (method === 'GET' && run !== undefined) return this.#resume(run, Number(query.get('from')));
    if (path !== '/v1/stream' || this.begun.length === 0) return undefined;
    const id = query.get('conv_id') ?? '';
    if (id === '') return refusal(400, 'Missing conversation id in path', 'invalid_request_error');
    if (method === 'DELETE') return this.#stop(id);
    return method === 'GET' ? this.#replay(id, Number(query.get('from'))) : undefined;
  }

  #replay(id: string, from: number): Reattached {
    const generation = this.#find(id);
    if (!generation) return refusal(404, 'Stream not found or expired', 'not_found_error');
    if (from < generation.dropped)
      return refusal(400, 'Stream offset lost, please restart', 'invalid_request_error');
    return { generation, from };
  }

  #resume(id: string, event: number): Reattached {
    const generation = this.#find(id);
    if (!generation) return { steps: plain(404, { error: 'Request not found' }) };
    return { generation, from: generation.placeOf(event) };
  }

  #stop(id: string): Reattached {
    this.#kept.get(id)?.stop();
    this.#kept.delete(id);
    return { steps: [{ kind: 'head', status: 204, headers: {} }, { kind: 'end' }] };
  }

  #find(id: string): Generation | undefined {
    const generation = this.#kept.get(id);
    return generation?.isExpired ? undefined : generation;
  }
}

/** The answer from that byte on. `attempt` selects the fault. */
export function restOf(generation: Generation, from: number, attempt: number): readonly Step[] {
  const { plan, request, occasion } = generation;
  const fault = plan.faults?.[attempt - 1];
  if (fault && !isStreamFault(fault)) return answer(plan, request, { ...occasion, attempt });
  const events = generation.after(from);
  const envelope = { id: '', model: request.model, created: 0 };
  const wire = PROVIDER_WIRES[wireAt(occasion.path ?? '') ?? 'chat_completions'];
  return streamSteps({ events, finished_after: events.length }, envelope, fault, wire);
}

function refusal(status: number, message: string, type: string): Reattached {
  return { steps: plain(status, { error: { code: status, message, type } }) };
}
