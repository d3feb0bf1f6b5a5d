import { isIP } from 'node:net';
import { Cluster, Redis } from 'ioredis';
import type { RedisAddress } from './address.ts';
import { REDIS_SCRIPTS } from './scripts.ts';

/** The `command_ms` of a client for which none is configured. */
export const COMMAND_MS = 1000;
/** A connection on which nothing came for this many times `command_ms` while answers were due is given up. */
const COMMANDS_PER_SILENCE = 2;
const CONNECT_MAX_MS = 2000;
/** Backoff between attempts to connect: doubles from the first to the last, with jitter. */
const RECONNECT_MIN_MS = 50;
const RECONNECT_MAX_MS = 1000;
const RECONNECT_JITTER = 0.2;
/** A client that lost its connection tries again within this time, however often it has tried. */
export const RECONNECT_WITHIN_MS = RECONNECT_MAX_MS * (1 + RECONNECT_JITTER);
/** How often the client leaves a server that has become a replica to look for the master. */
const MASTER_SEARCH_MS = 1000;
/** How often a cluster's slots are asked for when no error gives reason to. */
const SLOTS_REFRESH_MS = 5000;
const REDIRECTIONS_MAX = 4;

export type RedisClient = Redis | Cluster;

type Address<Kind extends RedisAddress['kind']> = Extract<RedisAddress, { readonly kind: Kind }>;

/**
 * A client that is not connected yet. It never queues what it cannot send, so that a Redis that is gone costs neither
 * memory nor time, and it connects again by itself. `command_ms`: a command that was not answered for so long has failed;
 * whether it was carried out is not known.
 */
export const createRedisClient = (address: RedisAddress, command_ms: number = COMMAND_MS): RedisClient =>
  address.kind === 'cluster' ? createCluster(address, command_ms) : createSingle(address, command_ms);

const createSingle = (address: Address<'server' | 'sentinel'>, command_ms: number): Redis =>
  new Redis({
    ...connectionOptions(address, command_ms),
    ...(address.kind === 'server' ? address.endpoint : sentinelOptions(address, command_ms)),
    db: address.db,
    enableOfflineQueue: false,
    retryStrategy,
    reconnectOnError: masterSearch(),
    // What is sent in one turn leaves as one write. A cluster's client cannot: it would not follow a slot that moved.
    enableAutoPipelining: true,
    scripts: REDIS_SCRIPTS,
    lazyConnect: true,
  });

const createCluster = (address: Address<'cluster'>, command_ms: number): Cluster =>
  new Cluster([...address.nodes], {
    redisOptions: connectionOptions(address, command_ms),
    enableOfflineQueue: false,
    clusterRetryStrategy: retryStrategy,
    slotsRefreshTimeout: CONNECT_MAX_MS,
    slotsRefreshInterval: SLOTS_REFRESH_MS,
    maxRedirections: REDIRECTIONS_MAX,
    // Certificates name hosts, not the addresses they resolve to.
    ...(address.tls && { dnsLookup: (host: string, found: FoundAddress) => found(null, host, isIP(host)) }),
    scripts: REDIS_SCRIPTS,
    lazyConnect: true,
  });

type FoundAddress = (error: null, address: string, family?: number) => void;

const connectionOptions = ({ username, password, tls }: RedisAddress, command_ms: number) => ({
  ...(username !== undefined && { username }),
  ...(password !== undefined && { password }),
  ...(tls && { tls: {} }),
  connectTimeout: CONNECT_MAX_MS,
  commandTimeout: command_ms,
  socketTimeout: COMMANDS_PER_SILENCE * command_ms,
  // What was sent when the connection broke has failed: the caller knows what to send again.
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
});

const sentinelOptions = ({ sentinels, master, tls }: Address<'sentinel'>, command_ms: number) => ({
  sentinels: [...sentinels],
  name: master,
  sentinelRetryStrategy: retryStrategy,
  sentinelCommandTimeout: command_ms,
  ...(tls && { sentinelTLS: {}, enableTLSForSentinelMode: true }),
});

function retryStrategy(attempts: number): number {
  const backoff_ms = Math.min(RECONNECT_MIN_MS * 2 ** (attempts - 1), RECONNECT_MAX_MS);
  return Math.round(backoff_ms * (1 + RECONNECT_JITTER * Math.random()));
}

/** A name that a failover moved to another server is resolved anew only by a new connection. */
function masterSearch(): (error: Error) => boolean {
  let searched_ms = Number.NEGATIVE_INFINITY;
  return ({ message }) => {
    const now_ms = performance.now();
    if (!message.startsWith('READONLY') || now_ms - searched_ms < MASTER_SEARCH_MS) return false;
    searched_ms = now_ms;
    return true;
  };
}
