import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { logKey } from '../../../src/checkpoint/redis/keys.ts';
import { JournalGapError, type Lease, type RunId, StaleLeaseError } from '../../../src/checkpoint/store.ts';
import { needs } from '../../needs.ts';
import { redisBinary, valkeyBinary } from '../../redis/binaries.ts';
import { LossyWire } from '../../redis/lossy-wire.ts';
import {
  LEASE_MS,
  type ObservedJournal,
  ObservedStore,
  SETTLES_MS,
  type Settings,
} from '../../redis/observed-store.ts';
import { RedisCluster } from '../../redis/redis-cluster.ts';
import { follow, RedisSentinel } from '../../redis/redis-sentinel.ts';
import { RedisServer } from '../../redis/redis-server.ts';
import { COMPLETE, HEADER_RECORD, newRunId, OWNER, textRecord } from '../fixtures.ts';

/** A replica that keeps nothing it has written, as if it had already dropped the beginning of a long answer. */
const NOTHING_KEPT = { rewritable_bytes: 0 };
/** How long a slow server hangs that isn't gone. */
const HANGS_MS = 1700;

vi.setConfig({ testTimeout: 60_000 });

for (const [name, binary] of Object.entries({ Redis: await redisBinary(), Valkey: await valkeyBinary() })) {
  if ('missing' in binary) test(`a run on ${name}`, needs(binary), () => {});
  else describe(`a run on ${name}`, () => describeDegradation(binary.path));
}

function describeDegradation(binary: string): void {
  async function start(...configuration: string[]) {
    return startWith({}, ...configuration);
  }

  async function startWith(settings: Settings, ...configuration: string[]) {
    const server = await RedisServer.start({ binary, configuration });
    onTestFinished(() => server.stop());
    const observed = await ObservedStore.open(server.url, settings);
    const journal = await observed.journal();
    journal.record('before, ');
    await journal.untilStored();
    return { server, observed, journal };
  }

  /** A failover loses `cd`; the journal records `ef` after that. */
  async function loseTail(settings: Settings) {
    const sentinel = await RedisSentinel.start(binary);
    onTestFinished(() => sentinel.stop());
    const observed = await ObservedStore.open(sentinel.url, settings);
    const journal = await observed.journal();
    journal.record('ab');
    await journal.untilStored();
    await sentinel.synchronize();
    await sentinel.loseWhat(async () => {
      journal.record('cd');
      await journal.untilStored();
    });
    journal.record('ef');
    return { sentinel, observed, journal };
  }

  const untilBack = ({ store }: ObservedStore): Promise<void> =>
    vi.waitFor(() => store.check(), { timeout: 10_000, interval: 10 });

  /** The journal and the store continue as if nothing had happened. */
  async function expectAllIsWell(observed: ObservedStore, journal: ObservedJournal): Promise<void> {
    await observed.untilRecovered();
    journal.record('after');
    await journal.untilStored();
    expect(await journal.writer.close({ status: 'complete' })).toBe(true);
    expect(await observed.text(journal.lease)).toBe(journal.text);
    expect(await observed.read(journal.lease)).toMatchObject({ status: 'complete' });
    expect(journal.stale).toEqual([]);
    expect(observed.damages).toEqual([]);
  }

  test('continues when the server is killed and comes back with its data', async () => {
    const { server, observed, journal } = await start('appendonly yes', 'appendfsync always');
    await server.kill();
    journal.record('meanwhile, ');
    await journal.untilDegraded();
    expect(await journal.writer.flush()).toBe(false);
    await observed.expectNothingWorks(journal.lease, /ECONNREFUSED|ECONNRESET|the connection was lost/);
    expect(
      await observed.failure((store) => store.append(journal.lease, [textRecord(8, 'x')])),
    ).not.toBeInstanceOf(JournalGapError);
    await observed.untilOutage();
    await server.start();
    await expectAllIsWell(observed, journal);
    expect(observed.outages).toHaveLength(1);
  });

  test('is never spliced when the server comes back without its data', async () => {
    const { server, observed, journal } = await startWith(NOTHING_KEPT);
    const { lease } = journal;
    await server.kill();
    await server.start();
    journal.record('meanwhile');
    await journal.untilLost();
    expect(journal.writer.degraded).toBe(true);
    await observed.untilRecovered();
    expect(await observed.failure((store) => store.finish(lease, COMPLETE))).toBeInstanceOf(JournalGapError);
    const started_ms = performance.now();
    expect(await journal.writer.close({ status: 'complete' })).toBe(false);
    expect(performance.now() - started_ms).toBeLessThan(SETTLES_MS);
    expect(await observed.store.read(lease.run, OWNER, 0)).toBeNull();
    expect(await observed.store.orphans(10)).toEqual([]);
    expect(journal.stale).toEqual([]);
    await expectAllIsWell(observed, await observed.journal());
  });

  test('is sealed as a partial when the server comes back without its tail', async () => {
    const { server, observed, journal } = await startWith(NOTHING_KEPT);
    await server.admin.save();
    journal.record('lost');
    await journal.untilStored();
    await server.kill();
    await server.start();
    journal.record('meanwhile');
    await journal.untilLost();
    expect(await journal.writer.close({ status: 'complete' })).toBe(true);
    expect(await observed.read(journal.lease)).toMatchObject({ status: 'recovered_from_partial', seq: 8 });
    expect(await observed.text(journal.lease)).toBe('before, ');
    expect(journal.stale).toEqual([]);
  });

  test('is stored again when the server comes back without its data', async () => {
    const { server, observed, journal } = await start();
    await server.kill();
    await server.start();
    await untilBack(observed);
    journal.record('meanwhile, ');
    await expectAllIsWell(observed, journal);
    expect(await observed.read(journal.lease)).toMatchObject({ epoch: 1, takeovers: [] });
  });

  test('is stored again when the server comes back without its tail', async () => {
    const { server, observed, journal } = await start();
    await server.admin.save();
    journal.record('lost, ');
    await journal.untilStored();
    await server.kill();
    await server.start();
    await untilBack(observed);
    journal.record('meanwhile, ');
    await expectAllIsWell(observed, journal);
  });

  test('is stored again when only its end is written after the server has lost its tail', async () => {
    const { server, observed, journal } = await start();
    await server.admin.save();
    journal.record('lost');
    await journal.untilStored();
    await server.kill();
    await server.start();
    await untilBack(observed);
    await observed.untilRecovered();
    expect(await journal.writer.close({ status: 'complete' })).toBe(true);
    expect(await observed.text(journal.lease)).toBe('before, lost');
    expect(await observed.read(journal.lease)).toMatchObject({ status: 'complete' });
  });

  test('is not stored again when it was purged while the server was there', async () => {
    const { server, observed, journal } = await start();
    await server.admin.del(logKey(journal.lease.run));
    journal.record('meanwhile');
    await journal.untilLost();
    expect(await observed.store.read(journal.lease.run, OWNER, 0)).toBeNull();
  });

  test('is not stored again over what another replica has written meanwhile', async () => {
    const { server, observed, journal } = await start();
    await server.admin.save();
    journal.record('lost');
    await journal.untilStored();
    await server.kill();
    await server.start();
    const other = await ObservedStore.open(server.url);
    const next = await other.store.acquire(journal.lease.run, OWNER, 1);
    expect(await other.store.append(next, [textRecord(8, 'x')])).toBe(9);
    await untilBack(observed);
    journal.record('meanwhile');
    await vi.waitFor(() => expect(journal.stale).toHaveLength(1), { timeout: 10_000, interval: 10 });
    expect(await other.text(next)).toBe('before, x');
  });

  test('continues when the server hangs for a while', async () => {
    const { server, observed, journal } = await start();
    server.pause();
    journal.record('meanwhile, ');
    await journal.untilDegraded();
    await observed.expectNothingWorks(journal.lease, /timed out|timeout|the connection was lost/i);
    await observed.untilOutage();
    // By now the client has given up this connection, too.
    await observed.expectNothingWorks(journal.lease, /timed out|timeout|the connection was lost/i);
    server.resume();
    await expectAllIsWell(observed, journal);
  });

  test.each([
    { command_ms: 1000, fails: true },
    { command_ms: 5000, fails: false },
  ])(
    'a server that hangs for longer than a second has failed: $fails, with $command_ms ms for a command',
    async ({ command_ms, fails }) => {
      const { server } = await start();
      const observed = await ObservedStore.open(server.url, { command_ms, lease_ms: 3 * command_ms });
      const journal = await observed.journal();
      journal.record('before, ');
      await journal.untilStored();
      server.pause();
      journal.record('meanwhile');
      await new Promise((resolve) => setTimeout(resolve, HANGS_MS));
      server.resume();
      await journal.untilStored();
      expect(journal.errors.length > 0).toBe(fails);
      if (!fails) expect(observed.outages).toEqual([]);
      expect(await observed.text(journal.lease)).toBe('before, meanwhile');
    },
  );

  test('continues when a server that was full has room again, and its replica never seemed dead', async () => {
    const { server, observed, journal } = await start();
    const other = await ObservedStore.open(server.url);
    await server.admin.config('SET', 'maxmemory', '1');
    journal.record('meanwhile, ');
    await journal.untilDegraded();
    expect(journal.errors.at(-1)).toMatchObject({
      message: expect.stringContaining('OOM command not allowed'),
    });
    expect(await observed.failure((store) => store.check())).toMatchObject({
      message: expect.stringContaining('OOM command not allowed'),
    });
    await observed.untilOutage();
    const until_ms = performance.now() + 2 * LEASE_MS;
    while (performance.now() < until_ms) {
      expect((await other.read(journal.lease)).holder.state).toBe('alive');
      await new Promise((resolve) => setTimeout(resolve, LEASE_MS / 10));
    }
    await server.admin.config('SET', 'maxmemory', '0');
    await expectAllIsWell(observed, journal);
  });

  test('continues when a master that has become a replica is a master again', async () => {
    const { server, observed, journal } = await start();
    const successor = await RedisServer.start({ binary });
    onTestFinished(() => successor.stop());
    await follow(successor, server);
    await successor.admin.replicaof('NO', 'ONE');
    await follow(server, successor);
    journal.record('meanwhile, ');
    await journal.untilDegraded();
    await vi.waitFor(
      () => expect(journal.errors.at(-1)).toMatchObject({ message: expect.stringContaining('READONLY') }),
      { timeout: 10_000 },
    );
    await observed.untilOutage();
    await server.admin.replicaof('NO', 'ONE');
    await expectAllIsWell(observed, journal);
  });

  test('continues after the server has forgotten its scripts', async () => {
    const { server, observed, journal } = await start();
    await server.admin.script('FLUSH');
    await expectAllIsWell(observed, journal);
    expect(journal.errors).toEqual([]);
  });

  test('that has lost its tail learns so, and continues under another lease only', async () => {
    const { server, observed } = await startWith(NOTHING_KEPT);
    const { store } = observed;
    const [cut, ended] = [await store.acquire(newRunId(), OWNER), await store.acquire(newRunId(), OWNER)];
    for (const lease of [cut, ended]) await store.append(lease, [HEADER_RECORD, textRecord(0, 'a', 'b')]);
    await server.admin.save();
    for (const lease of [cut, ended]) await store.append(lease, [textRecord(2, 'c')]);
    await server.kill();
    await server.start();
    await untilBack(observed);

    for (const lease of [cut, ended]) {
      const failure = await observed.failure(() => store.append(lease, [textRecord(3, 'd')]));
      expect(failure).toBeInstanceOf(JournalGapError);
      expect(failure.message).toContain('the store has lost the events after 2, up to 3');
      expect(await observed.failure(() => store.finish(lease, COMPLETE))).toBeInstanceOf(JournalGapError);
      expect(await observed.text(lease)).toBe('ab');
    }
    // The client has the rest, so another replica can store it again.
    const other = await ObservedStore.open(server.url);
    const next = await other.store.acquire(cut.run, OWNER, 1);
    expect(await other.store.append(next, [textRecord(2, 'c', 'd')])).toBe(4);
    await other.store.finish(next, COMPLETE);
    expect(await observed.text(cut)).toBe('abcd');
    expect(await observed.failure(() => store.append(cut, [textRecord(3, 'd')]))).toBeInstanceOf(
      StaleLeaseError,
    );
    // What is left of a run may end with any status except complete.
    await store.finish(ended, { status: 'recovered_from_partial', at_ms: 1 });
    expect(await observed.read(ended)).toMatchObject({ status: 'recovered_from_partial', seq: 2 });
    expect(observed.damages).toEqual([]);
  });

  test('that had ended before Redis came back with an older state is handed over, and one under way is not', async () => {
    const { server, observed } = await start();
    const { store } = observed;
    const leases = await Promise.all(Array.from({ length: 4 }, () => store.acquire(newRunId(), OWNER)));
    for (const lease of leases) await store.append(lease, [HEADER_RECORD, textRecord(0, 'a', 'b')]);
    const [complete, released, underWay, purged] = leases as [Lease, Lease, Lease, Lease];
    await server.admin.save();
    await store.finish(complete, COMPLETE);
    await store.release(released);
    await store.finish(purged, COMPLETE);
    await store.purge(purged.run, OWNER);
    await server.kill();
    await server.start();

    for (const lease of [complete, released, purged]) {
      await vi.waitFor(async () => expect((await observed.read(lease)).holder.state).toBe('released'), {
        timeout: 10_000,
        interval: 10,
      });
    }
    expect(await observed.read(complete)).toMatchObject({
      status: 'running',
      epoch: 2,
      seq: 2,
      takeovers: [],
    });
    const orphans = await store.orphans(10);
    expect(orphans.map(({ run }) => run).sort()).toEqual(
      [complete, released, purged].map(({ run }) => run).sort((one, other) => (one < other ? -1 : 1)),
    );
    expect(await store.append(underWay, [textRecord(2, 'c')])).toBe(3);
    expect((await observed.read(underWay)).holder).toMatchObject({ state: 'alive' });
  });

  test('of which a failover has forgotten the tail is stored again', async () => {
    const { observed, journal } = await loseTail({});
    await vi.waitFor(async () => expect(await observed.text(journal.lease)).toBe('abcdef'), {
      timeout: 20_000,
      interval: 50,
    });
    expect(journal.stale).toEqual([]);
    expect(observed.damages).toEqual([]);
  });

  test('of which a failover has forgotten the tail is never spliced', async () => {
    const { sentinel, journal } = await loseTail(NOTHING_KEPT);
    await journal.untilLost();
    expect(journal.errors.map(String).join('\n')).toMatch(/lost the events after 2/);
    expect(journal.stale).toEqual([]);
    const other = await ObservedStore.open(sentinel.url);
    expect(await other.text(journal.lease)).toBe('ab');
    const next = await other.store.acquire(journal.lease.run, OWNER, 1);
    expect(await other.store.append(next, [textRecord(2, 'c', 'd', 'e', 'f')])).toBe(6);
    expect(await other.text(journal.lease)).toBe('abcdef');
    expect(other.damages).toEqual([]);
  });

  test('that was acquired without an answer is given back', async () => {
    const { server } = await start();
    const wire = await LossyWire.to(server.port);
    onTestFinished(() => wire.close());
    const observed = await ObservedStore.open(`redis://127.0.0.1:${wire.port}`);
    await observed.journal();
    const run = newRunId();
    wire.loseAnswerTo(logKey(run));
    await observed.failure((store) => store.acquire(run, OWNER));
    wire.mend();
    await vi.waitFor(
      async () => {
        const stored = await observed.store.read(run, OWNER, 0);
        expect(stored).toMatchObject({ epoch: 2, holder: { state: 'released' } });
      },
      { timeout: 10_000 },
    );
  });

  test('that could not be handed over is handed over later', async () => {
    const { server, observed } = await start('appendonly yes', 'appendfsync always');
    const lease = await observed.store.acquire(newRunId(), OWNER);
    await observed.store.append(lease, [HEADER_RECORD, textRecord(0, 'a')]);
    await server.kill();
    await observed.failure((store) => store.release(lease));
    await server.start();
    await vi.waitFor(async () => expect((await observed.read(lease)).holder.state).toBe('released'), {
      timeout: 10_000,
    });
    expect(await observed.store.orphans(10)).toEqual([{ run: lease.run, owner: OWNER, epoch: 2 }]);
    expect(await observed.failure((store) => store.append(lease, [textRecord(1, 'b')]))).toBeInstanceOf(
      StaleLeaseError,
    );
  });

  test('does not seem lost only because Redis was away for longer than a lease', async () => {
    const { server, observed, journal } = await start('appendonly yes', 'appendfsync always');
    const other = await ObservedStore.open(server.url);
    await server.kill();
    await new Promise((resolve) => setTimeout(resolve, 1.5 * LEASE_MS));
    await server.start();
    const seen = new Set<string>();
    const until_ms = performance.now() + 2 * LEASE_MS + 1000;
    while (performance.now() < until_ms) {
      const holder = await other.read(journal.lease).then(
        (stored) => stored.holder.state,
        () => 'unknown',
      );
      seen.add(holder);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(seen).toContain('alive');
    expect(seen).not.toContain('lost');
    expect(observed.recoveries).toBe(1);
  });

  test('of a cluster continues when a master is killed and comes back with its data', async () => {
    const cluster = await RedisCluster.start(binary, ['appendonly yes', 'appendfsync always']);
    onTestFinished(() => cluster.stop());
    const observed = await ObservedStore.open(cluster.url);
    const [first, killed] = cluster.nodes as [RedisServer, RedisServer];
    const journals = await Promise.all(
      [first, killed].map(async (node) => observed.journal(await runAt(cluster, node))),
    );
    for (const journal of journals) journal.record('before, ');
    for (const journal of journals) await journal.untilStored();
    await killed.kill();
    for (const journal of journals) journal.record('meanwhile, ');
    await journals[1]?.untilDegraded();
    await killed.start();
    for (const journal of journals) await journal.untilStored();
    for (const journal of journals) {
      journal.record('after');
      expect(await journal.writer.close({ status: 'complete' })).toBe(true);
      expect(await observed.text(journal.lease)).toBe(journal.text);
    }
  });
}

/** A run whose journal is stored on this node of the cluster. */
async function runAt(cluster: RedisCluster, node: RedisServer): Promise<RunId> {
  for (;;) {
    const run = newRunId();
    if ((await cluster.nodeOf(logKey(run))) === node) return run;
  }
}
