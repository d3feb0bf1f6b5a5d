import { CheckpointScheduler } from '../../src/checkpoint/checkpoint-scheduler.ts';
import { foldJournal } from '../../src/checkpoint/journal-fold.ts';
import { MemoryRuns } from '../../src/checkpoint/memory/runs.ts';
import { MemoryStore } from '../../src/checkpoint/memory/store.ts';
import type { RunId } from '../../src/checkpoint/store.ts';
import { PauseWatch } from '../../src/lib/pause-watch.ts';
import type { Outcome } from '../../src/plans/outcome.ts';
import { follow } from '../../src/proxy/resume/follow.ts';
import { reachable } from '../../src/proxy/resume/reachable.ts';
import type { Reader } from '../../src/proxy/resume/reader.ts';
import { successionOf, successorOf } from '../../src/proxy/resume/succession.ts';
import { HAND_OVER } from '../../src/proxy/run/context/run.ts';
import type { RunContext } from '../../src/proxy/run/context/run-context.ts';
import { NO_OBSERVER } from '../../src/proxy/run/context/run-observer.ts';
import { relay } from '../../src/proxy/run/relay.ts';
import { CapabilityMemory } from '../../src/proxy/wires/dialects/capability-memory.ts';
import type { Plan } from '../provider/script.ts';
import { type DeathAtAppend, Life, MortalStore, MortalTime, MortalTransport } from './mortal.ts';
import { RecordingClient } from './recording-client.ts';
import {
  configurationOf,
  METRICS,
  OWNER,
  RUN,
  readingOf,
  runOf,
  SILENT_LOG,
  type Simulation,
  type SimulationOptions,
} from './simulate.ts';
import { SimulatedProvider } from './simulated-provider.ts';
import { VirtualTime } from './virtual-time.ts';

/**
 * How a replica ends. `event`: it dies while it writes the event after this many. `append`: see {@link DeathAtAppend}.
 * `leave`: its client's connection breaks after this many events, and the replica continues without the client until it
 * dies at an append, if one is given. `hand_over`: it shuts down after this many events.
 */
export type Fate =
  | { readonly kind: 'event'; readonly event: number }
  | ({ readonly kind: 'append' } & DeathAtAppend)
  | { readonly kind: 'hand_over'; readonly event: number }
  | { readonly kind: 'leave'; readonly event: number; readonly death?: DeathAtAppend };

/**
 * How the client resumes. `wrapper`: with its cursor and all its events. `event_id`: with the id of its last event, and
 * with all its events only if the id isn't enough. `anew`: without anything, as a stock SDK does.
 */
export type Manner = 'wrapper' | 'event_id' | 'anew';

export interface TakeoverOptions extends SimulationOptions {
  /** The fate of each replica in turn; further replicas live. */
  readonly fates: readonly Fate[];
  readonly manner: Manner;
  readonly durability: 'interval' | 'write_ahead';
  readonly pace_ms?: number;
  /**
   * For each replica in turn, a second reader before the client resumes elsewhere: it reads the run from its beginning
   * on a separate replica, which dies after this many events. `null` means no reader.
   */
  readonly readers?: readonly (number | null)[];
}

export interface Takeovers extends Simulation {
  /** The outcome on each replica; undefined for those that died. */
  readonly outcomes: readonly (Outcome | undefined)[];
  /** The last replica itself asked the provider. */
  readonly asked: boolean;
  readonly violations: readonly string[];
  /** Everything that the client received from all replicas. */
  readonly body: string;
  /** How often the client was given a separate run. */
  readonly forks: number;
}

/** The complete events received, and the comments between them. */
interface Received {
  readonly payloads: string[];
  readonly ids: string[];
  body: string;
}

const NOTHING: Received = { payloads: [], ids: [], body: '' };

/** Simulates one run that several replicas deliver one after the other, in virtual time. */
export async function simulateTakeovers(plan: Plan, options: TakeoverOptions): Promise<Takeovers> {
  const time = new VirtualTime();
  const provider = options.provider ?? new SimulatedProvider(plan, time, options);
  const runs = new MemoryRuns();
  const violations: string[] = [];
  const outcomes: (Outcome | undefined)[] = [];
  let received = NOTHING;
  let client = new RecordingClient();
  let { manner } = options;
  let run = RUN;
  let forks = 0;
  const askers = new Set<number>();

  /** A new replica for each delivery. `onAsk` is called when it asks the provider. */
  const replicaOf = (life: Life, onAsk: () => void, death?: DeathAtAppend): RunContext => {
    const mortalTime = new MortalTime(time, life);
    return {
      configuration: withDurability(options),
      transport: (options.around ?? ((transport) => transport))(
        new MortalTransport(provider, life, { time: mortalTime, pace_ms: options.pace_ms ?? 0 }, onAsk),
        time,
      ),
      store: new MortalStore(new MemoryStore({ time, ttl_ms: 604_800_000, runs }), life, death),
      scheduler: new CheckpointScheduler({ interval_ms: 100, time: mortalTime }),
      pauses: new PauseWatch(mortalTime, 1000),
      observer: options.observer ?? NO_OBSERVER,
      capabilities: new CapabilityMemory(mortalTime),
      metrics: METRICS,
      log: options.log ?? SILENT_LOG,
      time: mortalTime,
      random: options.random ?? (() => 0.5),
    };
  };

  /** Reads the run as a client that has none of it. */
  const readAnew = async (events: number): Promise<void> => {
    const life = new Life();
    const { promise: broken, resolve: breakConnection } = Promise.withResolvers<undefined>();
    const second = new RecordingClient(({ body }) => {
      if (!life.isOver && eventsIn(body) > events) life.kill();
    });
    life.end.addEventListener('abort', () => breakConnection(undefined));
    const context = replicaOf(life, () => {});
    const stored = await context.store.read(run, OWNER, 0);
    if (!stored) return;
    const { signal } = new AbortController();
    const reading = follow(
      readerOf({ ...options, manner: 'anew' }, run, NOTHING, signal),
      stored,
      second,
      context,
    );
    const outcome = await time.drive(Promise.race([reading, broken]));
    if (outcome === undefined) return;
    const { text } = readingOf(second.body, options, true);
    const known = await context.store.read(run, OWNER, 0);
    if (foldJournal(known?.records ?? []).text !== text)
      violations.push('a second reader has another answer than the log');
  };

  for (let replica = 0; ; replica++) {
    const fate = options.fates[replica];
    const life = new Life();
    const { promise: broken, resolve: breakConnection } = Promise.withResolvers<undefined>();
    const had = manner === 'anew' ? NOTHING : received;
    const end = fate && fate.kind !== 'append' ? fate.event : Number.POSITIVE_INFINITY;
    const shutDown = new AbortController();
    client = new RecordingClient(({ body }) => {
      if (life.isOver || eventsIn(body) <= end) return;
      if (fate?.kind === 'hand_over') return shutDown.abort(HAND_OVER);
      if (fate?.kind === 'event') life.kill();
      breakConnection(undefined);
    });
    life.end.addEventListener('abort', () => breakConnection(undefined));
    const death = fate?.kind === 'append' ? fate : fate?.kind === 'leave' ? fate.death : undefined;
    const onAsk = () => {
      askers.add(replica);
      const settled = /"tool_calls":\[|"type":"(?:tool_use|function_call)"/.test(had.body + client.body);
      if (settled && (options.events ?? 'none') === 'none')
        violations.push('asked the provider again after a call was delivered');
    };
    const context = replicaOf(life, onAsk, death);
    const delivery = deliver({ ...options, manner }, run, had, client, context, shutDown.signal);
    const outcome = await time.drive(Promise.race([delivery, broken]));
    if (client.opened && client.headers['holdfast-run-id'] !== run) {
      run = client.headers['holdfast-run-id'] as RunId;
      forks++;
    }
    outcomes.push(outcome);
    received = append(had, client.body, fate?.kind === 'hand_over' ? Number.POSITIVE_INFINITY : end);
    const turnedAway = outcome === 'rejected' && client.rejection?.status === 409;
    if (turnedAway) manner = 'wrapper';
    else if (outcome !== undefined && outcome !== 'handed_over' && !client.destroyed) break;
    const events = options.readers?.[replica] ?? null;
    if (events !== null) await readAnew(events);
  }

  const stored = await new MemoryStore({ time, ttl_ms: 604_800_000, runs }).read(run, OWNER, 0);
  const stream = readingOf(received.body, options, true);
  received.ids.forEach((id, index) => {
    if (Number(id.split('.').at(-1)) !== index + 1) violations.push(`event ${index + 1} has the id ${id}`);
  });
  return {
    outcome: outcomes.at(-1) ?? 'failed',
    outcomes,
    asked: askers.has(outcomes.length - 1),
    client,
    stream,
    requests: provider.requests,
    attempts: provider.attempts,
    journal: foldJournal(stored?.records ?? []),
    elapsed_ms: time.now(),
    violations,
    body: received.body,
    forks,
  };
}

async function deliver(
  options: TakeoverOptions,
  run: RunId,
  had: Received,
  client: RecordingClient,
  context: RunContext,
  signal: AbortSignal,
): Promise<Outcome> {
  const { store } = context;
  const stored = await store.read(run, OWNER, 0);
  if (!stored) {
    if (had.payloads.length > 0) throw new Error('the store has forgotten the run');
    return relay(runOf(options, signal, options.manner !== 'anew'), client, context);
  }
  const told = readerOf(options, run, had, signal);
  const byId: Reader = { ...told, tail: [], ...epochIn(had) };
  const reader = options.manner === 'event_id' && reachable(stored, byId) ? byId : told;
  if (reachable(stored, reader)) return follow(reader, stored, client, context);
  const left = successionOf(stored, { ...reader, ...epochIn(had) });
  if (!left) throw new Error('what the client has is not a part of the log');
  const fork = await successorOf({ run, owner: OWNER, ...left, digest: 'digest' }, context);
  const begun = await store.read(fork, OWNER, 0);
  const own = readerOf(options, fork, had, signal);
  if (!begun || !reachable(begun, own)) throw new Error('what the client has is not a part of its own log');
  return follow(own, begun, client, context);
}

function readerOf(options: TakeoverOptions, run: RunId, had: Received, signal: AbortSignal): Reader {
  const resumable = options.manner !== 'anew';
  return {
    run,
    owner: OWNER,
    cursor: had.payloads.length,
    tail: had.payloads,
    signal,
    resumable,
    revive: () => ({ ...runOf(options, signal, resumable), id: run }),
    onTakenOver: () => {},
  };
}

/** The epoch, if the id of the last event contains it. */
function epochIn({ ids }: Received): Pick<Reader, 'epoch'> {
  const epoch = ids.at(-1)?.split('.')[1];
  return epoch === undefined ? {} : { epoch };
}

function withDurability(options: TakeoverOptions) {
  const configuration = configurationOf(options);
  const { durability } = options;
  return { ...configuration, checkpoint: { ...configuration.checkpoint, durability } };
}

const eventsIn = (body: string): number =>
  body.split('\ndata: ').length - (body.startsWith('data: ') ? 0 : 1);

/** What a client has after the first `limit` complete events of `body`; it drops a partial one. */
function append({ payloads, ids, body: had }: Received, body: string, limit: number): Received {
  const received: Received = { payloads: [...payloads], ids: [...ids], body: had };
  let events = 0;
  for (const block of body.split(/(?<=\n\n)/)) {
    if (!block.endsWith('\n\n') || events === limit) break;
    events++;
    for (const line of block.split('\n')) {
      if (line.startsWith('data: ')) received.payloads.push(line.slice('data: '.length));
      if (line.startsWith('id: ')) received.ids.push(line.slice('id: '.length));
      if (!line.startsWith('id: ') && line !== '') received.body += `${line}\n`;
    }
    received.body += '\n';
  }
  return received;
}
