import pino from 'pino';
import { CheckpointScheduler } from '../../../../src/checkpoint/checkpoint-scheduler.ts';
import { MemoryStore } from '../../../../src/checkpoint/memory/store.ts';
import type {
  Configuration,
  HedgeConfiguration,
  UpstreamConfiguration,
} from '../../../../src/config/configuration.ts';
import { completeConfiguration } from '../../../../src/config/load.ts';
import { PauseWatch } from '../../../../src/lib/pause-watch.ts';
import { Metrics } from '../../../../src/metrics/metrics.ts';
import type { Outcome } from '../../../../src/plans/outcome.ts';
import { NO_OBSERVER } from '../../../../src/proxy/run/context/run-observer.ts';
import { relay } from '../../../../src/proxy/run/relay.ts';
import { targetsOfRun } from '../../../../src/proxy/run/targets/targets-of-run.ts';
import { RouteTable } from '../../../../src/proxy/upstream/route-table.ts';
import { HealthRegistry } from '../../../../src/proxy/upstream/target-health.ts';
import {
  type Transport,
  TransportFailure,
  type TransportRequest,
  type TransportResponse,
} from '../../../../src/proxy/upstream/transport.ts';
import type { ChatRequest } from '../../../../src/proxy/wires/common/request.ts';
import type { EventsMode } from '../../../../src/proxy/wires/common/wire.ts';
import { CapabilityMemory } from '../../../../src/proxy/wires/dialects/capability-memory.ts';
import { WIRES } from '../../../../src/proxy/wires/registry.ts';
import type { Plan } from '../../../provider/script.ts';
import { RecordingClient } from '../../../simulation/recording-client.ts';
import { chatRequest, OWNER, RUN } from '../../../simulation/simulate.ts';
import { SimulatedProvider } from '../../../simulation/simulated-provider.ts';
import { readStream, type StreamReading } from '../../../simulation/stream-reading.ts';
import { VirtualTime } from '../../../simulation/virtual-time.ts';

/** The provider behind an upstream. It reports its own name as the model, unless `model` is set. */
export interface SimulatedTarget extends Partial<UpstreamConfiguration> {
  readonly plan: Plan | ((request: number) => Plan);
  readonly model?: string;
  readonly context_tokens?: number;
  /** See `SimulatedProvider`. */
  readonly piece_bytes?: number;
  readonly piece_ms?: number;
  /** Refuses connections between these two times, in milliseconds of virtual time. */
  readonly away_ms?: readonly [number, number];
}

export interface Asked {
  readonly outcome: Outcome;
  readonly client: RecordingClient;
  readonly stream: StreamReading;
  /** The requests that the run caused at each upstream, and their order. */
  readonly requests: Readonly<Record<string, number>>;
  readonly order: readonly string[];
  readonly elapsed_ms: number;
}

/** Sections of the configuration, and of the route. */
interface RouteSections {
  readonly recovery?: object;
  readonly breaker?: object;
  readonly clocks?: object;
  readonly hedge?: Partial<HedgeConfiguration>;
}

/** The parameters of a run. */
export interface RunOptions {
  readonly client?: RecordingClient;
  readonly gone?: AbortController;
  readonly events?: EventsMode;
  readonly unstreamed?: true;
  readonly deadline_ms?: number;
}

export type LogLine = Readonly<Record<string, unknown>>;

/** One route of one process, with a provider behind each of its targets, on virtual time. */
export class SimulatedRoute implements Transport {
  readonly time = new VirtualTime();
  readonly metrics = new Metrics();
  readonly log: LogLine[] = [];
  readonly providers: ReadonlyMap<string, SimulatedProvider>;
  readonly #configuration: Configuration;
  readonly #models: RouteTable;
  readonly #healths: HealthRegistry;
  readonly #capabilities = new CapabilityMemory(this.time);
  readonly #targets: Readonly<Record<string, SimulatedTarget>>;
  /** Upstreams in the order in which they were asked. */
  readonly #order: string[] = [];

  /** Targets by the name of their upstream, in order of preference. */
  constructor(
    targets: Readonly<Record<string, SimulatedTarget>>,
    { hedge, ...sections }: RouteSections = {},
  ) {
    const entries = Object.entries(targets);
    this.#configuration = completeConfiguration({
      upstreams: Object.fromEntries(
        entries.map(
          ([
            name,
            {
              plan: _,
              model: __,
              context_tokens: ___,
              piece_bytes: ____,
              piece_ms: _____,
              away_ms: ______,
              ...upstream
            },
          ]) => [name, { base_url: `http://${name}.test/v1`, dialect: 'openai', ...upstream }],
        ),
      ),
      routes: [
        {
          model: '*',
          ...(hedge && { hedge }),
          targets: entries.map(([upstream, { model, context_tokens }]) => ({
            upstream,
            ...(model !== undefined && { model }),
            ...(context_tokens !== undefined && { context_tokens }),
          })),
        },
      ],
      ...sections,
    });
    this.#models = new RouteTable(this.#configuration);
    this.#healths = new HealthRegistry(this.#configuration);
    this.metrics.targets = () => this.#healths.states(this.time.now());
    this.#targets = targets;
    this.providers = new Map(
      entries.map(([name, { plan, ...pieces }]) => [name, new SimulatedProvider(plan, this.time, pieces)]),
    );
  }

  async open(request: TransportRequest): Promise<TransportResponse> {
    const name = new URL(request.url).hostname.replace(/\.test$/, '');
    const provider = this.providers.get(name);
    if (!provider) throw new Error(`nobody is at ${request.url}`);
    const [from_ms, to_ms] = this.#targets[name]?.away_ms ?? [0, 0];
    const now_ms = this.time.now();
    if (now_ms >= from_ms && now_ms < to_ms) throw new TransportFailure('ECONNREFUSED');
    this.#order.push(name);
    return provider.open(request);
  }

  async close(): Promise<void> {}

  begin(
    fields: Partial<ChatRequest> = {},
    {
      client = new RecordingClient(),
      gone = new AbortController(),
      events = 'none' as EventsMode,
      ...options
    }: RunOptions = {},
  ): Promise<Asked> {
    const request = chatRequest(fields);
    const { time } = this;
    const log = pino({ level: 'debug', base: null }, { write: (line) => this.log.push(JSON.parse(line)) });
    const began_ms = time.now();
    const before = this.#order.length;
    const [first, ...others] = this.#models.targets(request.model);
    if (!first) throw new Error('there is no target');
    const run = {
      id: RUN,
      owner: OWNER,
      wire: WIRES.chat_completions,
      ...targetsOfRun(
        first,
        [first, ...others],
        ({ api_key }) => ({ authorization: api_key ?? 'client' }),
        this.#healths,
        request.model,
      ),
      hedge: this.#models.hedge(request.model),
      body: JSON.stringify(request),
      request,
      events,
      resumable: false,
      ...options,
      signal: gone.signal,
    };
    const delivered = relay(run, client, {
      configuration: this.#configuration,
      transport: this,
      store: new MemoryStore({ time, ttl_ms: 604_800_000 }),
      scheduler: new CheckpointScheduler({ interval_ms: 100, time }),
      pauses: new PauseWatch(time, 1000),
      observer: NO_OBSERVER,
      capabilities: this.#capabilities,
      metrics: this.metrics,
      log,
      time,
      random: () => 0.5,
    });
    return delivered.then((outcome) => {
      const order = this.#order.slice(before);
      const names = [...this.providers.keys()];
      return {
        outcome,
        client,
        stream: readStream(client.body, { live: events !== 'none' }),
        requests: Object.fromEntries(
          names.map((name) => [name, order.filter((asked) => asked === name).length]),
        ),
        order,
        elapsed_ms: time.now() - began_ms,
      };
    });
  }

  /** Relays a run to its end. */
  ask(fields: Partial<ChatRequest> = {}, options?: Parameters<SimulatedRoute['begin']>[1]): Promise<Asked> {
    return this.time.drive(this.begin(fields, options));
  }

  /** Lets virtual time pass. */
  async pass(delay_ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.time.after(delay_ms, resolve);
    await this.time.drive(promise);
  }

  /** The lines of the log with this message. */
  logged(message: string): readonly LogLine[] {
    return this.log.filter(({ msg }) => msg === message);
  }
}
