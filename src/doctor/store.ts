import { randomBytes } from 'node:crypto';
import { constants, existsSync, statSync } from 'node:fs';
import { access, open, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isRedisUrl } from '../checkpoint/redis/address.ts';
import type { Configuration } from '../config/configuration.ts';
import { loopGuard } from '../proxy/upstream/headers.ts';
import { fileStoreDirectory } from '../server/store-directory.ts';
import { bounded, type Finding, Findings, latencies, reasonOf } from './finding.ts';

/** Tests the store that will keep the runs. */
export async function examineStore(configuration: Configuration): Promise<Finding[]> {
  const { store } = configuration.checkpoint;
  const findings = new Findings('store');
  const directory = fileStoreDirectory(store);
  if (directory !== undefined) await examineDirectory(findings, directory);
  else if (isRedisUrl(store)) {
    // Loaded late, because the other stores don't need the client.
    const { examineRedis } = await import('./redis.ts');
    await examineRedis(findings, configuration);
  } else
    findings.warn(
      'durability',
      'the process keeps runs in its memory, and they end with it',
      'for anything but a trial, set checkpoint.store to file:DIR or redis://HOST.',
    );
  examineSecret(findings, configuration);
  return findings.all;
}

const MEBIBYTE = 1_048_576;
const FREE_MIN_BYTES = 64 * MEBIBYTE;
const FREE_AMPLE_BYTES = 1024 * MEBIBYTE;
/** The ends of runs are forced to disk together, and a slow disk may delay other writes meanwhile. */
const SYNC_SLOW_MS = 50;
const SYNCS = 10;
const LIMIT_MS = 20_000;
/** The types of network file systems: NFS, SMB, SMB2, CephFS. */
const REMOTE_TYPES: ReadonlySet<number> = new Set([0x6969, 0x517b, 0xfe534d42, 0xff534d42, 0x00c36400]);

/** Tests the directory of a file store, without creating it. */
async function examineDirectory(findings: Findings, directory: string): Promise<void> {
  try {
    await bounded(LIMIT_MS, () => examineDisk(findings, directory));
  } catch (error) {
    findings.fail(
      'directory',
      `can't use ${directory} (${reasonOf(error)})`,
      'make it a directory that this user can write to, or set another checkpoint.store.',
    );
  }
}

async function examineDisk(findings: Findings, directory: string): Promise<void> {
  const existing = await nearest(directory);
  await access(existing, constants.R_OK | constants.W_OK | constants.X_OK);
  const syncs_ms = await syncDurations(existing);
  findings.ok(
    'directory',
    existing === directory
      ? `${directory} is writable`
      : `${directory} doesn't exist yet, and can be created in ${existing}`,
  );
  examineSyncs(findings, syncs_ms);
  const { bavail, bsize, type } = await statfs(existing);
  examineSpace(findings, bavail * bsize);
  if (REMOTE_TYPES.has(type))
    findings.warn(
      'file system',
      'the directory is on a network file system',
      'let only one process use it, or use redis:// for several: their leases need a file system that is local to all of them.',
    );
}

/** The directory itself, or the closest one above it that exists. */
async function nearest(directory: string): Promise<string> {
  for (let path = directory; ; path = dirname(path)) {
    try {
      if ((await stat(path)).isDirectory()) return path;
      throw Object.assign(new Error('not a directory'), { code: 'ENOTDIR' });
    } catch (error) {
      if (reasonOf(error) !== 'ENOENT' || path === dirname(path)) throw error;
    }
  }
}

async function syncDurations(directory: string): Promise<number[]> {
  const path = join(directory, `.holdfast-doctor-${randomBytes(8).toString('hex')}`);
  const block = randomBytes(4096);
  const durations_ms: number[] = [];
  const file = await open(path, 'wx', 0o600);
  try {
    for (let sync = 0; sync < SYNCS; sync++) {
      const began_ms = performance.now();
      await file.write(block);
      await file.datasync();
      durations_ms.push(performance.now() - began_ms);
    }
  } finally {
    await file.close();
    await rm(path, { force: true });
  }
  return durations_ms;
}

function examineSyncs(findings: Findings, durations_ms: readonly number[]): Finding {
  const figures = latencies(durations_ms);
  const seen = `writing 4 KiB to the disk takes ${figures.p50_ms} ms (at most ${figures.max_ms} ms)`;
  if (figures.p50_ms < SYNC_SLOW_MS) return findings.ok('fsync', seen, figures);
  return findings.warn(
    'fsync',
    seen,
    'use a faster disk, or redis://: meanwhile, other writes of the store may have to wait.',
    figures,
  );
}

function examineSpace(findings: Findings, free_bytes: number): Finding {
  const figures = { free_bytes };
  const seen = `${Math.floor(free_bytes / MEBIBYTE)} MiB are free`;
  if (free_bytes >= FREE_AMPLE_BYTES) return findings.ok('free space', seen, figures);
  const remedy = 'free some space, or shorten checkpoint.ttl_s: on a full disk, runs lose their checkpoints.';
  if (free_bytes >= FREE_MIN_BYTES) return findings.warn('free space', seen, remedy, figures);
  return findings.fail('free space', seen, remedy, figures);
}

const OTHERS = 0o077;

/** Whether replicas will recognise the owners of each other's runs. */
function examineSecret(findings: Findings, { secret, checkpoint }: Configuration): Finding {
  const directory = fileStoreDirectory(checkpoint.store);
  if (secret !== undefined) {
    const name = deploymentName(secret);
    return findings.ok('secret', `configured; replicas with the same secret show the same name: ${name}`, {
      deployment: name,
    });
  }
  if (isRedisUrl(checkpoint.store))
    return findings.fail(
      'secret',
      'none is configured, but replicas that share a Redis need the same one',
      'set HOLDFAST_SECRET to the same value for all replicas, e.g. to the output of `openssl rand -base64 32`.',
    );
  if (directory === undefined)
    return findings.ok(
      'secret',
      'none is configured; serve makes one that lasts as long as the memory store',
    );
  return examineSecretFile(findings, join(directory, 'secret'));
}

function examineSecretFile(findings: Findings, path: string): Finding {
  if (!existsSync(path))
    return findings.ok('secret', `none is configured; serve makes one and keeps it in ${path}`);
  const { mode } = statSync(path);
  if ((mode & OTHERS) === 0) return findings.ok('secret', `kept in ${path}, which only this user can read`);
  return findings.warn(
    'secret',
    `other users can read ${path} (mode ${(mode & 0o777).toString(8)})`,
    `chmod 600 ${path}`,
  );
}

/** The name that the deployment sends upstream anyway. It reveals nothing about the secret. */
function deploymentName(secret: string): string {
  const headers: { via?: string } = {};
  loopGuard(secret)(headers);
  return headers.via?.split(' ').at(-1) ?? '';
}
