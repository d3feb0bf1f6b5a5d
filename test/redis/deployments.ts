import { afterAll, expect } from 'vitest';
import { parseRedisUrl } from '../../src/checkpoint/redis/address.ts';
import { RedisStore, type RedisStoreOptions } from '../../src/checkpoint/redis/store.ts';
import { createSeal } from '../../src/checkpoint/seal.ts';
import { SEALING_KEY } from '../checkpoint/fixtures.ts';
import { redisBinary, type ServerBinary, valkeyBinary } from './binaries.ts';
import { RedisCluster } from './redis-cluster.ts';
import { RedisServer } from './redis-server.ts';

export interface DeploymentOptions {
  readonly ttl_ms: number;
  readonly complete_ttl_ms?: number;
  readonly lease_ms: number;
}

/** The options of one replica that differ from its deployment's. */
export interface ReplicaOptions {
  /** Replaces the common key, for sealing and for reading. */
  readonly sealing_key?: string;
  /** By default, a report of an error fails the test. */
  onError?(error: Error): void;
}

/** Opens the store of one more replica of a deployment. */
type OpenReplica = (own?: ReplicaOptions) => Promise<RedisStore>;
type Deploy = (options: DeploymentOptions) => OpenReplica;

/**
 * By name, a function that creates a separate deployment for each test, or the reason why its server is unavailable.
 * The servers start with the first store and stop after the tests of the file.
 */
export async function redisDeployments(): Promise<Record<string, Deploy | { readonly missing: string }>> {
  const [redis, valkey] = await Promise.all([redisBinary(), valkeyBinary()]);
  return {
    Redis: deployment(redis, singleServer),
    'sealed Redis': deployment(redis, singleServer, SEALING_KEY),
    'Redis Cluster': deployment(redis, cluster),
    Valkey: deployment(valkey, singleServer),
  };
}

/** Starts servers; `emptied` resolves with the URL of an empty database. */
type Starter = (
  binary: string,
) => Promise<{ readonly emptied: () => Promise<string>; stop(): Promise<void> }>;

function deployment(
  binary: ServerBinary,
  start: Starter,
  common_key?: string,
): Deploy | { readonly missing: string } {
  if ('missing' in binary) return binary;
  let started: ReturnType<Starter> | undefined;
  afterAll(async () => (await started)?.stop());
  return (options) => {
    let url: Promise<string> | undefined;
    return async ({ sealing_key = common_key, onError = unexpected } = {}) => {
      started ??= start(binary.path);
      url ??= started.then(({ emptied }) => emptied());
      const seal = sealing_key === undefined ? undefined : createSeal([sealing_key]);
      return openRedisStore(await url, { ...options, seal, onError });
    };
  };
}

const singleServer: Starter = async (binary) => {
  const server = await RedisServer.start({ binary });
  let databases = 0;
  return { emptied: async () => `${server.url}/${databases++}`, stop: () => server.stop() };
};

const cluster: Starter = async (binary) => {
  const nodes = await RedisCluster.start(binary);
  const emptied = async () => {
    await nodes.flush();
    return nodes.url;
  };
  return { emptied, stop: () => nodes.stop() };
};

const unexpected = (error: Error): never => expect.unreachable(error.message);

async function openRedisStore(
  url: string,
  options: DeploymentOptions & Pick<RedisStoreOptions, 'seal' | 'onError'>,
): Promise<RedisStore> {
  const store = new RedisStore({
    address: parseRedisUrl(url),
    ...options,
    onOutage: unexpected,
    onRecovery: () => expect.unreachable('there was an outage'),
  });
  await store.start({ required: true });
  return store;
}
