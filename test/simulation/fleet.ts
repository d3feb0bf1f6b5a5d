import type { Logger } from 'pino';
import { CheckpointScheduler } from '../../src/checkpoint/checkpoint-scheduler.ts';
import { foldJournal, type JournalFold } from '../../src/checkpoint/journal-fold.ts';
import { MemoryRuns } from '../../src/checkpoint/memory/runs.ts';
import { MemoryStore } from '../../src/checkpoint/memory/store.ts';
import type { StoredRun } from '../../src/checkpoint/store.ts';
import { PauseWatch } from '../../src/lib/pause-watch.ts';
import type { Outcome } from '../../src/plans/outcome.ts';
import { follow } from '../../src/proxy/resume/follow.ts';
import type { Reader } from '../../src/proxy/resume/reader.ts';
import type { RunContext } from '../../src/proxy/run/context/run-context.ts';
import { NO_OBSERVER } from '../../src/proxy/run/context/run-observer.ts';
import { relay } from '../../src/proxy/run/relay.ts';
import { CapabilityMemory } from '../../src/proxy/wires/dialects/capability-memory.ts';
import type { Plan } from '../provider/script.ts';
import { Life, MortalStore, MortalTime, MortalTransport } from './mortal.ts';
import { RecordingClient } from './recording-client.ts';
import {
  configurationOf,
  METRICS,
  OWNER,
  RUN,
  runOf,
  SILENT_LOG,
  type SimulationOptions,
} from './simulate.ts';
import { SimulatedProvider } from './simulated-provider.ts';
import { VirtualTime } from './virtual-time.ts';

const TTL_MS = 604_800_000;

export interface Replica {
  readonly context: RunContext;
  readonly life: Life;
}

/** One delivery to one client, under way. */
export interface Session {
  readonly client: RecordingClient;
  readonly outcome: Promise<Outcome>;
  /** Aborts the run, or reading it, with an optional reason. */
  leave(reason?: unknown): void;
}

/** Several replicas that share a store and a provider, in virtual time. All sessions concern the same run. */
export class Fleet {
  readonly time = new VirtualTime();
  readonly runs = new MemoryRuns();
  readonly provider: SimulatedProvider;
  readonly #options: SimulationOptions & { readonly pace_ms?: number };

  constructor(plan: Plan, options: SimulationOptions & { readonly pace_ms?: number } = {}) {
    this.#options = options;
    this.provider = new SimulatedProvider(plan, this.time, options);
  }

  replica(log: Logger = SILENT_LOG): Replica {
    const life = new Life();
    const time = new MortalTime(this.time, life);
    const pace = { time, pace_ms: this.#options.pace_ms ?? 0 };
    const context = {
      configuration: configurationOf(this.#options),
      transport: new MortalTransport(this.provider, life, pace, () => {}),
      store: new MortalStore(new MemoryStore({ time: this.time, ttl_ms: TTL_MS, runs: this.runs }), life),
      scheduler: new CheckpointScheduler({ interval_ms: 100, time }),
      pauses: new PauseWatch(time, 1000),
      observer: NO_OBSERVER,
      capabilities: new CapabilityMemory(time),
      metrics: METRICS,
      log,
      time,
      random: () => 0.5,
    };
    return { life, context };
  }

  begin({ context }: Replica, { resumable = true, client = new RecordingClient() } = {}): Session {
    const gone = new AbortController();
    const run = runOf(this.#options, gone.signal, resumable);
    return { client, outcome: relay(run, client, context), leave: (reason) => gone.abort(reason) };
  }

  /** Resumes the run. */
  async follow(
    { context }: Replica,
    told: Partial<Reader> = {},
    client: RecordingClient = new RecordingClient(),
  ): Promise<Session> {
    const stored = await this.time.drive(context.store.read(RUN, OWNER, 0));
    if (!stored) throw new Error('there is no such run');
    const gone = new AbortController();
    const { signal } = gone;
    const reader: Reader = {
      run: RUN,
      owner: OWNER,
      cursor: 0,
      tail: [],
      signal,
      resumable: false,
      revive: () => runOf(this.#options, signal, told.resumable ?? false),
      onTakenOver: () => {},
      ...told,
    };
    const outcome = follow(reader, stored, client, context);
    return { client, outcome, leave: (reason) => gone.abort(reason) };
  }

  /** Advances virtual time. */
  async pass(delay_ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.time.after(delay_ms, resolve);
    await this.time.drive(promise);
    await this.time.drive(Promise.resolve());
  }

  async stored(): Promise<StoredRun> {
    const store = new MemoryStore({ time: this.time, ttl_ms: TTL_MS, runs: this.runs });
    const stored = await store.read(RUN, OWNER, 0);
    if (!stored) throw new Error('there is no such run');
    return stored;
  }

  async journal(): Promise<JournalFold> {
    return foldJournal((await this.stored()).records);
  }
}

/** The payloads of the complete events in a body. */
export const payloadsOf = (body: string): string[] =>
  body
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => line.slice('data: '.length));
