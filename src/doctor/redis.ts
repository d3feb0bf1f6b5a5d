import { randomBytes } from 'node:crypto';
import type { Redis } from 'ioredis';
import { newRunId } from '../checkpoint/owner.ts';
import { isRedisUrl, parseRedisUrl, type RedisAddress } from '../checkpoint/redis/address.ts';
import { createRedisClient, type RedisClient } from '../checkpoint/redis/client.ts';
import { refusalOf } from '../checkpoint/redis/refusal.ts';
import { fieldOf, serversOf, settingOf } from '../checkpoint/redis/server-checks.ts';
import type { Owner, Store } from '../checkpoint/store.ts';
import type { Configuration } from '../config/configuration.ts';
import { systemTime } from '../lib/time.ts';
import { openStore } from '../server/open-store.ts';
import { bounded, type Finding, type Findings, latencies, reasonOf, rounded_ms } from './finding.ts';

const CONNECT_MAX_MS = 5000;
const QUESTIONS_MAX_MS = 10_000;
const VERSION_MIN = 7;
const PINGS = 20;
/** Replicas store a batch every 100 ms, so a slow one delays the next. */
const SLOW_MS = 20;
/** Leases use the clock of Redis; the times that Holdfast shows don't. */
const SKEW_MAX_MS = 2000;

/** Tests the servers of a Redis store, and whether it grants leases. */
export async function examineRedis(findings: Findings, configuration: Configuration): Promise<void> {
  const { store } = configuration.checkpoint;
  if (!isRedisUrl(store)) return;
  const address = parseRedisUrl(store);
  const client = createRedisClient(address);
  try {
    if (!(await connect(findings, client, address))) return;
    const { wait_replicas } = configuration.checkpoint.replication;
    for (const server of serversOf(client))
      await examineServer(findings, server, nameOf(server, address), wait_replicas);
  } finally {
    client.disconnect();
  }
  await examineLease(findings, configuration);
}

async function connect(findings: Findings, client: RedisClient, address: RedisAddress): Promise<boolean> {
  let cause: unknown;
  for (const event of ['sentinelError', 'node error', 'error'])
    client.on(event, (error: unknown) => {
      cause = error;
    });
  const began_ms = performance.now();
  try {
    await bounded(CONNECT_MAX_MS, () => client.connect());
  } catch (error) {
    const [seen = '', remedy = ''] = splitMessage(refusalOf(address.name, cause ?? error).message);
    findings.fail('reachable', seen, remedy);
    return false;
  }
  const connect_ms = rounded_ms(performance.now() - began_ms);
  findings.ok('reachable', `${address.name} answers after ${connect_ms} ms`, { connect_ms });
  return true;
}

/** The store's name, or each server's own in a cluster; without user and password. */
const nameOf = ({ options }: Redis, { kind, name }: RedisAddress): string =>
  kind === 'cluster' ? `${options.host}:${options.port}` : name;

async function examineServer(
  findings: Findings,
  server: Redis,
  name: string,
  wait_replicas: number,
): Promise<void> {
  try {
    await bounded(QUESTIONS_MAX_MS, async () => {
      const information = await server.info();
      const field = (key: string) => fieldOf(information, key);
      examineVersion(findings, name, field);
      examineEviction(findings, name, field);
      await examinePersistence(findings, name, field, server);
      await examineReplication(findings, name, field, server, wait_replicas);
      await examineLatency(findings, name, server);
      await examineClock(findings, name, server);
    });
  } catch (error) {
    const [seen, remedy] = splitMessage(refusalOf(name, error).message);
    findings.fail('server', seen, remedy);
  }
}

type Field = (key: string) => string | undefined;

function examineVersion(findings: Findings, name: string, field: Field): Finding {
  const redis = field('redis_version');
  if (redis === undefined) return findings.skip('version', `${name} doesn't show its version`);
  const valkey = field('valkey_version');
  const seen = valkey === undefined ? `${name} is Redis ${redis}` : `${name} is Valkey ${valkey}`;
  const figures = { redis_version: redis };
  if (Number.parseInt(redis, 10) >= VERSION_MIN) return findings.ok('version', seen, figures);
  return findings.fail('version', seen, `use Redis ${VERSION_MIN} or later, or Valkey.`, figures);
}

function examineEviction(findings: Findings, name: string, field: Field): Finding {
  const policy = field('maxmemory_policy');
  const limit_bytes = Number(field('maxmemory') ?? 0);
  const used_bytes = Number(field('used_memory') ?? 0);
  if (policy === undefined) return findings.skip('eviction', `${name} doesn't show its policy`);
  const figures = { policy, limit_bytes, used_bytes };
  const limit = limit_bytes > 0 ? `${used_bytes} of ${limit_bytes} bytes used` : 'no memory limit';
  if (policy === 'noeviction')
    return findings.ok('eviction', `${name} evicts nothing (noeviction), ${limit}`, figures);
  return findings.warn(
    'eviction',
    `${name} has maxmemory-policy ${policy}, ${limit}: when full, it may evict runs that are still needed`,
    'run CONFIG SET maxmemory-policy noeviction, and set it in the configuration file of Redis.',
    figures,
  );
}

async function examinePersistence(
  findings: Findings,
  name: string,
  field: Field,
  server: Redis,
): Promise<Finding> {
  if (field('aof_enabled') === '1') return findings.ok('persistence', `${name} keeps an append-only file`);
  // If this user has no permission for that, the other findings still appear.
  const save = await settingOf(server, 'save');
  if (save === undefined)
    return findings.skip(
      'persistence',
      `${name} has no append-only file, and this user may not ask about snapshots`,
    );
  if (save !== '')
    return findings.ok('persistence', `${name} has no append-only file, but makes snapshots (save ${save})`);
  return findings.warn(
    'persistence',
    `${name} persists nothing: all runs are lost when its process ends`,
    'run CONFIG SET appendonly yes if runs should survive a restart of Redis.',
  );
}

/** What a failover may lose. */
async function examineReplication(
  findings: Findings,
  name: string,
  field: Field,
  server: Redis,
  wait_replicas: number,
): Promise<Finding> {
  const connected = field('connected_slaves');
  if (connected === undefined) return findings.skip('replication', `${name} doesn't show its replicas`);
  const figures = { replicas: Number(connected), wait_replicas };
  if (figures.replicas < wait_replicas)
    return findings.fail(
      'replication',
      `${name} has ${connected} replicas, but checkpoint.replication waits for ${wait_replicas}`,
      'connect that many replicas: until then, no run can be taken over.',
      figures,
    );
  if (figures.replicas === 0) return findings.ok('replication', `${name} has no replicas`, figures);
  const seen = `${name} has ${connected} ${figures.replicas === 1 ? 'replica' : 'replicas'}`;
  const required = await settingOf(server, 'min-replicas-to-write');
  if (required !== '0') return findings.ok('replication', seen, figures);
  return findings.warn(
    'replication',
    `${seen}, but accepts writes without them: a failover loses what a disconnected master has accepted`,
    'run CONFIG SET min-replicas-to-write 1; checkpoint.replication protects takeovers.',
    figures,
  );
}

async function examineLatency(findings: Findings, name: string, server: Redis): Promise<Finding> {
  const durations_ms: number[] = [];
  for (let ping = 0; ping < PINGS; ping++) {
    const began_ms = performance.now();
    await server.ping();
    durations_ms.push(performance.now() - began_ms);
  }
  const figures = latencies(durations_ms);
  const seen = `${name} answers in ${figures.p50_ms} ms (at most ${figures.max_ms} ms)`;
  if (figures.p50_ms < SLOW_MS) return findings.ok('latency', seen, figures);
  return findings.warn(
    'latency',
    seen,
    'move Redis closer: with write_ahead, every delta waits for it.',
    figures,
  );
}

async function examineClock(findings: Findings, name: string, server: Redis): Promise<Finding> {
  const asked_ms = Date.now();
  // The permissions that docs/stores.md lists don't include this command.
  const time = await server.time().catch(() => undefined);
  if (!time) return findings.skip('clock', `${name} doesn't tell this user the time`);
  const [seconds = 0, microseconds = 0] = time.map(Number);
  const error_ms = (Date.now() - asked_ms) / 2;
  const skew_ms = Math.round(seconds * 1000 + microseconds / 1000 - asked_ms - error_ms);
  const figures = { skew_ms };
  const seen = `the clock of ${name} is ${Math.abs(skew_ms)} ms ${skew_ms < 0 ? 'behind' : 'ahead of'} ours`;
  if (Math.abs(skew_ms) <= SKEW_MAX_MS + error_ms) return findings.ok('clock', seen, figures);
  return findings.warn(
    'clock',
    seen,
    "synchronise both clocks (chrony, NTP): leases don't depend on it, but the times of runs and replicas do.",
    figures,
  );
}

const LIMIT_MS = 15_000;
/** Makes what the probe leaves behind expire soon. */
const PROBE_TTL_S = 60;
/** An owner that no credential leads to. */
const NO_CREDENTIAL = 'doctor'.padEnd(64, '-') as Owner;

/** Begins, ends and reads a run, which takes every script and permission that a replica needs. */
async function examineLease(findings: Findings, { secret, checkpoint }: Configuration): Promise<void> {
  let store: Store | undefined;
  try {
    await bounded(LIMIT_MS, async () => {
      store = await openStore(checkpoint.store, {
        ...checkpoint,
        // The probe reads only what it wrote, so any secret will do. Another check reports a missing one.
        secret: secret ?? randomBytes(16).toString('hex'),
        ttl_s: PROBE_TTL_S,
        on_unreachable: 'fail',
        time: systemTime,
        onError: () => {},
        onOutage: () => {},
        onRecovery: () => {},
      });
      const began_ms = performance.now();
      const run = newRunId();
      const lease = await store.acquire(run, NO_CREDENTIAL);
      await store.finish(lease, { status: 'cancelled', at_ms: Date.now() });
      const stored = await store.read(run, NO_CREDENTIAL, 0);
      if (stored?.status !== 'cancelled') throw new Error("couldn't read what was written");
      const probe_ms = rounded_ms(performance.now() - began_ms);
      findings.ok('lease', `beginning, ending and reading a run took ${probe_ms} ms`, { probe_ms });
    });
  } catch (error) {
    const message = error instanceof Error ? error.message : reasonOf(error);
    const [seen, remedy] = splitMessage(message);
    const isRight = message.includes('NOPERM');
    findings.fail(
      'lease',
      seen,
      isRight ? 'grant this user the commands and keys that docs/stores.md lists.' : remedy,
    );
  } finally {
    await store?.close().catch(() => {});
  }
}

/** A refusal's message says what is wrong and, after a semicolon, what to do. */
const splitMessage = (message: string): [seen: string, remedy: string] => {
  const end = message.lastIndexOf('; ');
  return end === -1
    ? [message, 'see docs/stores.md.']
    : [message.slice(0, end), `${message.slice(end + 2)}.`];
};
