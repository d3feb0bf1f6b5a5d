import pino, { type Logger } from 'pino';
import { CheckpointScheduler } from '../../src/checkpoint/checkpoint-scheduler.ts';
import type { WireName } from '../../src/checkpoint/journal.ts';
import { foldJournal, type JournalFold } from '../../src/checkpoint/journal-fold.ts';
import { MemoryStore } from '../../src/checkpoint/memory/store.ts';
import type { Owner, RunId, Store } from '../../src/checkpoint/store.ts';
import type { Configuration, RecoveryPolicy, UpstreamConfiguration } from '../../src/config/configuration.ts';
import type { DialectName } from '../../src/config/dialect-names.ts';
import { completeConfiguration } from '../../src/config/load.ts';
import type { HedgeWaits } from '../../src/interrupts/clocks.ts';
import { PauseWatch } from '../../src/lib/pause-watch.ts';
import { Metrics } from '../../src/metrics/metrics.ts';
import { HedgeBudget } from '../../src/plans/hedge-budget.ts';
import type { Outcome } from '../../src/plans/outcome.ts';
import type { Client } from '../../src/proxy/downstream/client.ts';
import { LEFT, type Run } from '../../src/proxy/run/context/run.ts';
import { NO_OBSERVER, type RunObserver } from '../../src/proxy/run/context/run-observer.ts';
import { relay } from '../../src/proxy/run/relay.ts';
import type { RunTarget } from '../../src/proxy/upstream/target.ts';
import { TargetHealth } from '../../src/proxy/upstream/target-health.ts';
import type { Transport } from '../../src/proxy/upstream/transport.ts';
import type { ChatRequest } from '../../src/proxy/wires/common/request.ts';
import type { EventsMode, WireRequest } from '../../src/proxy/wires/common/wire.ts';
import { CapabilityMemory } from '../../src/proxy/wires/dialects/capability-memory.ts';
import { WIRES } from '../../src/proxy/wires/registry.ts';
import { PROMPT_END } from '../provider/request.ts';
import type { Plan } from '../provider/script.ts';
import { readMessages } from './messages-reading.ts';
import { messagesRequestOf } from './messages-request.ts';
import { RecordingClient } from './recording-client.ts';
import { readResponses } from './responses-reading.ts';
import { responsesRequestOf } from './responses-request.ts';
import { SimulatedProvider, type SimulatedRequest } from './simulated-provider.ts';
import { readStream, type StreamReading } from './stream-reading.ts';
import { VirtualTime } from './virtual-time.ts';

export const RUN: RunId = `run_${'0'.repeat(22)}`;
export const OWNER = 'owner' as Owner;
const UPSTREAM = 'http://provider.test/v1';
/** Shared, because registering a process's default metrics takes longer than most runs. */
export const METRICS = new Metrics();
export const DEFAULTS = completeConfiguration({ upstreams: { default: { base_url: UPSTREAM } } });

export interface Simulation {
  readonly outcome: Outcome;
  readonly client: RecordingClient;
  readonly stream: StreamReading;
  readonly requests: readonly SimulatedRequest[];
  /** One per attempt; see `SimulatedProvider`. */
  readonly attempts: SimulatedProvider['attempts'];
  readonly journal: JournalFold;
  readonly elapsed_ms: number;
  /** Set only for a run that went through several replicas. */
  readonly takeover?: {
    /** Calls held back while text followed them were lost with their replica, which alone knew of them. */
    readonly losesHeldCalls: boolean;
  };
}

export interface SimulationOptions {
  /** The default is `chat_completions`. */
  readonly wire?: WireName;
  readonly request?: Partial<ChatRequest>;
  readonly dialect?: DialectName;
  /** The dialects of further targets of the route; one provider serves all of them. */
  readonly others?: readonly DialectName[];
  /** When to ask another target in parallel, without a limit on the share of such requests. */
  readonly hedge?: HedgeWaits;
  readonly events?: EventsMode;
  /** The provider reports its usage in every chunk. */
  readonly reportsAlong?: boolean;
  readonly thread?: string;
  readonly recovery?: Partial<RecoveryPolicy>;
  readonly configuration?: Partial<Configuration>;
  readonly piece_bytes?: number;
  readonly piece_ms?: number;
  /** See `SimulatedProvider`. */
  readonly refused_connections?: readonly number[];
  readonly random?: () => number;
  readonly capabilities?: (time: VirtualTime) => CapabilityMemory;
  readonly store?: (time: VirtualTime) => Store;
  readonly log?: Logger;
  readonly observer?: RunObserver;
  readonly headers?: Readonly<Record<string, string>>;
  /** Wraps the transport between each replica and the provider. */
  readonly around?: (transport: Transport, time: VirtualTime) => Transport;
  /** Replaces the scripted provider. */
  readonly provider?: Transport & Pick<SimulatedProvider, 'requests' | 'attempts'>;
  readonly onWrite?: (client: RecordingClient, leave: Leave) => void;
  /** Wraps the recording client. */
  readonly through?: (client: RecordingClient, leave: Leave) => Client;
}

/** Makes the client leave, or ends the run for another reason. */
export type Leave = (reason?: unknown) => void;

export const chatRequest = (fields: Partial<ChatRequest> = {}): ChatRequest => ({
  model: 'model',
  messages: [{ role: 'user', content: 'Tell me.' }],
  stream: true,
  stream_options: { include_usage: true },
  ...fields,
});

export function configurationOf(options: SimulationOptions): Configuration {
  return {
    ...DEFAULTS,
    ...options.configuration,
    upstreams: { default: upstreamOf(options) },
    recovery: { ...DEFAULTS.recovery, ...options.recovery },
  };
}

const upstreamOf = ({ dialect }: SimulationOptions): UpstreamConfiguration => ({
  base_url: UPSTREAM,
  dialect: dialect ?? 'openai',
});

const targetsOf = (others: readonly DialectName[], options: SimulationOptions): RunTarget[] => {
  const first = { name: 'default', upstream: upstreamOf(options) };
  const further = others.map((dialect, index) => {
    const name = `other-${index + 1}`;
    return { name, upstream: { base_url: `http://${name}.test/v1`, dialect } };
  });
  return [first, ...further].map((target) => ({
    ...target,
    headers: {},
    health: new TargetHealth(DEFAULTS.breaker),
  }));
};

/** The name of the upstream behind this request's address. */
export const upstreamAt = (url: string): string =>
  new URL(url).hostname.replace('provider', 'default').replace(/\.test$/, '');

/** Translates the chat request to the wire. */
function requestOf({ wire = 'chat_completions', request }: SimulationOptions): WireRequest {
  const { messages, ...parameters } = chatRequest(request);
  if (wire === 'chat_completions') return { ...parameters, messages };
  if (wire === 'messages') return messagesRequestOf({ ...parameters, messages });
  if (wire === 'responses') return responsesRequestOf({ ...parameters, messages });
  return { ...parameters, prompt: `${messages.map(({ content }) => content).join('\n')}${PROMPT_END}` };
}

const READERS: Partial<Record<WireName, typeof readStream>> = {
  messages: readMessages,
  responses: readResponses,
};

/** What a client of this wire reads from a body. `parted`: a loss may have separated events that were sent together. */
export function readingOf(
  body: string,
  { wire = 'chat_completions', events = 'none', reportsAlong = false }: SimulationOptions,
  parted = false,
): StreamReading {
  const manner = { live: events !== 'none', parted, reportsAlong };
  return (READERS[wire] ?? readStream)(body, manner);
}

export function runOf(options: SimulationOptions, signal: AbortSignal, resumable = false): Run {
  const request = requestOf(options);
  return {
    id: RUN,
    owner: OWNER,
    wire: WIRES[options.wire ?? 'chat_completions'],
    target: { name: 'default', upstream: upstreamOf(options), headers: options.headers ?? {} },
    ...(options.others && { targets: targetsOf(options.others, options) }),
    ...(options.hedge && { hedge: { ...options.hedge, budget: new HedgeBudget(1) } }),
    body: JSON.stringify(request),
    request,
    events: options.events ?? 'none',
    resumable,
    ...(options.thread !== undefined && { thread: options.thread }),
    signal,
  };
}

/** Shared, because creating a logger takes longer than many runs. */
export const SILENT_LOG: Logger = pino({ level: process.env.HOLDFAST_LOG ?? 'silent' });

/**
 * Simulates one run against the scripted provider in virtual time. Everything is real except the network and the clock.
 */
export async function simulate(
  plan: Plan | ((attempt: number) => Plan),
  options: SimulationOptions = {},
): Promise<Simulation> {
  const time = new VirtualTime();
  const provider = options.provider ?? new SimulatedProvider(plan, time, options);
  const gone = new AbortController();
  const { onWrite } = options;
  const leave: Leave = (reason = LEFT) => gone.abort(reason);
  const client = new RecordingClient(onWrite && ((self) => onWrite(self, leave)));
  const store = options.store?.(time) ?? new MemoryStore({ time, ttl_ms: 604_800_000 });
  const outcome = await time.drive(
    relay(runOf(options, gone.signal), options.through?.(client, leave) ?? client, {
      configuration: configurationOf(options),
      transport: options.around?.(provider, time) ?? provider,
      store,
      scheduler: new CheckpointScheduler({ interval_ms: 100, time }),
      pauses: new PauseWatch(time, 1000),
      observer: options.observer ?? NO_OBSERVER,
      capabilities: options.capabilities?.(time) ?? new CapabilityMemory(time),
      metrics: METRICS,
      log: options.log ?? SILENT_LOG,
      time,
      random: options.random ?? (() => 0.5),
    }),
  );
  const stored = await store.read(RUN, OWNER, 0);
  return {
    outcome,
    client,
    stream: readingOf(client.body, options),
    requests: provider.requests,
    attempts: provider.attempts,
    journal: foldJournal(stored?.records ?? []),
    elapsed_ms: time.now(),
  };
}
