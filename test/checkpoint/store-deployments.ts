import { expect } from 'vitest';
import { FileStore } from '../../src/checkpoint/file/file-store.ts';
import { MemoryRuns } from '../../src/checkpoint/memory/runs.ts';
import { MemoryStore } from '../../src/checkpoint/memory/store.ts';
import { createSeal } from '../../src/checkpoint/seal.ts';
import type { Store } from '../../src/checkpoint/store.ts';
import { systemTime } from '../../src/lib/time.ts';
import { type DeploymentOptions, type ReplicaOptions, redisDeployments } from '../redis/deployments.ts';
import { SEALING_KEY, temporaryDirectory } from './fixtures.ts';

/** Opens the store of one more replica of a deployment. */
export type OpenReplica = (own?: ReplicaOptions) => Store | Promise<Store>;

export interface StoreDeployments {
  /** By name; each call creates a separate deployment for a test. */
  readonly deployments: Readonly<Record<string, () => OpenReplica>>;
  /** The stores that this machine can't run, and the reasons. */
  readonly missing: readonly (readonly [name: string, reason: string])[];
}

/** One of each kind; the others differ in seals or servers. */
const QUICK = new Set(['memory', 'file', 'Redis']);

/** All stores for the tests of one file, or one of each kind in the quick tier. */
export async function storeDeployments(options: DeploymentOptions): Promise<StoreDeployments> {
  const deployments: Record<string, () => OpenReplica> = {
    memory: () => {
      const runs = new MemoryRuns();
      return () => new MemoryStore({ time: systemTime, ...options, runs });
    },
    file: () => files(options),
    'sealed file': () => files(options, SEALING_KEY),
  };
  const missing: [string, string][] = [];
  for (const [name, deploy] of Object.entries(await redisDeployments())) {
    if ('missing' in deploy) missing.push([name, deploy.missing]);
    else deployments[name] = () => deploy(options);
  }
  if (process.env.HOLDFAST_TIER !== 'quick') return { deployments, missing };
  for (const name of Object.keys(deployments).filter((each) => !QUICK.has(each))) {
    delete deployments[name];
    missing.push([name, 'npm run test:all tests every kind of store in all its forms']);
  }
  return { deployments, missing };
}

function files(kept: DeploymentOptions, common_key?: string): OpenReplica {
  const options = { dir: temporaryDirectory(), ...kept } as const;
  const unexpected = (error: Error) => expect.unreachable(error.message);
  return ({ sealing_key = common_key, onError = unexpected } = {}) => {
    const seal = sealing_key === undefined ? undefined : createSeal([sealing_key]);
    return new FileStore({ ...options, seal, onError });
  };
}
