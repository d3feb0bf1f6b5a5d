import { CheckpointScheduler } from '../../../src/checkpoint/checkpoint-scheduler.ts';
import { MemoryRuns } from '../../../src/checkpoint/memory/runs.ts';
import { MemoryStore } from '../../../src/checkpoint/memory/store.ts';
import type { FinalStatus, Holder, Lease, Owner, RunId, StoredRun } from '../../../src/checkpoint/store.ts';
import { completeConfiguration } from '../../../src/config/load.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { PauseWatch } from '../../../src/lib/pause-watch.ts';
import { Metrics } from '../../../src/metrics/metrics.ts';
import { requestDigest } from '../../../src/proxy/resume/request-digest.ts';
import { type Ask, RunLookup } from '../../../src/proxy/resume/run-lookup.ts';
import type { RunContext } from '../../../src/proxy/run/context/run-context.ts';
import { NO_OBSERVER } from '../../../src/proxy/run/context/run-observer.ts';
import { RunRegistry } from '../../../src/proxy/run/run-registry.ts';
import { CapabilityMemory } from '../../../src/proxy/wires/dialects/capability-memory.ts';
import { HEADER_RECORD, newRunId, OWNER, textRecord } from '../../checkpoint/fixtures.ts';
import { VirtualTime } from '../../simulation/virtual-time.ts';

export const LEASE_MS = 3000;
export const DIGEST = requestDigest('secret', {
  wire: 'chat_completions',
  events: 'none',
  body: '{"model":"m"}',
});

/** A store in which a test decides how long the replica of the runs lives, and when it gave its last sign of life. */
export class WatchedStore extends MemoryStore {
  holder: (() => Holder) | undefined;
  reads = 0;
  /** While this is set, reads wait for it. */
  gate: Promise<void> | undefined;

  override async read(run: RunId, owner: Owner, from: number): Promise<StoredRun | null> {
    this.reads++;
    await this.gate;
    const stored = await super.read(run, owner, from);
    if (stored?.status !== 'running' || !this.holder) return stored;
    return { ...stored, holder: this.holder() };
  }
}

export const noTransport = {
  open: () => Promise.reject(new Error('nothing is asked of a provider here')),
  close: async () => {},
};

/** A replica, and another one that begins the runs. */
export function lookupOf({ match_requests = true } = {}) {
  const time = new VirtualTime();
  const runs = new MemoryRuns();
  const ttl_ms = 1_000_000_000;
  const store = new WatchedStore({ time, ttl_ms, runs });
  const other = new MemoryStore({ time, ttl_ms, runs });
  const configuration = completeConfiguration({
    upstreams: { provider: { base_url: 'http://127.0.0.1:9/v1' } },
    checkpoint: { store: 'memory', lease_ms: LEASE_MS },
    resume: { match_requests },
  });
  const context: RunContext = {
    configuration,
    transport: noTransport,
    store,
    scheduler: new CheckpointScheduler({ interval_ms: 100, time }),
    pauses: new PauseWatch(time, 1000),
    observer: NO_OBSERVER,
    capabilities: new CapabilityMemory(time),
    metrics: new Metrics(),
    log: createLogger('silent'),
    time,
    random: () => 0.5,
  };
  const registry = new RunRegistry(configuration.limits);
  const lookup = new RunLookup(context, registry);
  const ask = (more: Partial<Ask> = {}): Ask => ({
    owner: OWNER,
    digest: DIGEST,
    fresh: newRunId(),
    signal: new AbortController().signal,
    isJoinable: () => true,
    ...more,
  });
  const find = (asked: Ask) => time.drive(lookup.find(asked));
  return { time, store, other, registry, context, lookup, ask, find };
}

export type Setting = ReturnType<typeof lookupOf>;

/** Makes the other replica begin to deliver `texts` for the request. */
export async function begin({ other, lookup, ask, time }: Setting, ...texts: string[]): Promise<Lease> {
  const lease = await other.acquire(newRunId(), OWNER);
  const records = texts.length > 0 ? [HEADER_RECORD, textRecord(0, ...texts)] : [HEADER_RECORD];
  await other.append(lease, records);
  lookup.remember(ask(), lease.run);
  await time.drive(Promise.resolve());
  return lease;
}

export const finish = (store: MemoryStore, lease: Lease, status: FinalStatus): Promise<void> =>
  store.finish(lease, { status, at_ms: 0 });
