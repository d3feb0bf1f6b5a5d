import { isIP } from 'node:net';
import { Cluster, Redis } from 'ioredis';
import type { RedisAddress } from './address.ts';
import { REDIS_SCRIPTS } from './scripts.ts';

/** Default of `command_ms`. */
export const COMMAND_MS = 1000;
/** A connection is given up once nothing has arrived for this many times `command_ms` while answers are due. */
const COMMANDS_PER_SILENCE = 2;
const CONNECT_MAX_MS = 2000;
/** Backoff between connection attempts: doubles from the minimum to the maximum, with jitter. */
const RECONNECT_MIN_MS = 50;
const RECONNECT_MAX_MS = 1000;
const RECONNECT_JITTER = 0.2;
/** The longest wait before a reconnection attempt, however many have failed. */
export const RECONNECT_WITHIN_MS = RECONNECT_MAX_MS * (1 + RECONNECT_JITTER);
/** How often the client may leave a server that became a replica in order to find the master. */
const MASTER_SEARCH_MS = 1000;
/** How often the client refreshes a cluster's slots without an error as the reason. */
const SLOTS_REFRESH_MS = 5000;
const REDIRECTIONS_MAX = 4;

export type RedisClient = Redis | Cluster;

type Address<Kind extends RedisAddress['kind']> = Extract<RedisAddress, { readonly kind: Kind }>;

/**
 * A client that isn't connected yet. It never queues commands it can't send, so that an unreachable Redis costs neither
 * memory nor time, and it reconnects by itself. `command_ms`: an unanswered command fails after this time; the server
 * may or may not have executed it.
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
    // Commands of one turn leave in a single write. A cluster client can't do this, because it wouldn't follow a slot
    // that moved.
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
    // Keeps host names, because certificates name hosts rather than resolved addresses.
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
  // Commands fail when the connection breaks. The caller knows what to send again.
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

/** Only a new connection resolves a host name again after a failover moved it to another server. */
function masterSearch(): (error: Error) => boolean {
  let searched_ms = Number.NEGATIVE_INFINITY;
  return ({ message }) => {
    const now_ms = performance.now();
    if (!message.startsWith('READONLY') || now_ms - searched_ms < MASTER_SEARCH_MS) return false;
    searched_ms = now_ms;
    return true;
  };
}
