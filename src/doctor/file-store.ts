import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { access, open, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Finding, Findings } from './finding.ts';
import { bounded, latencies, reasonOf } from './measuring.ts';

const MEBIBYTE = 1_048_576;
const FREE_MIN_BYTES = 64 * MEBIBYTE;
const FREE_AMPLE_BYTES = 1024 * MEBIBYTE;
/** As `fsync: finish` pays it once per run. */
const SYNC_SLOW_MS = 50;
const SYNCS = 10;
const LIMIT_MS = 20_000;
/** Of file systems whose files are elsewhere: NFS, SMB, SMB2, CephFS. */
const REMOTE_TYPES: ReadonlySet<number> = new Set([0x6969, 0x517b, 0xfe534d42, 0xff534d42, 0x00c36400]);

/** A directory that a file store is to be in. It is not made here if it does not exist. */
export async function examineDirectory(findings: Findings, directory: string): Promise<void> {
  try {
    await bounded(LIMIT_MS, () => examine(findings, directory));
  } catch (error) {
    findings.fail(
      'directory',
      `${directory} cannot be used (${reasonOf(error)})`,
      'make it a directory that this user can write to, or configure checkpoint.store.',
    );
  }
}

async function examine(findings: Findings, directory: string): Promise<void> {
  const existing = await nearest(directory);
  await access(existing, constants.R_OK | constants.W_OK | constants.X_OK);
  const syncs_ms = await syncDurations(existing);
  findings.ok(
    'directory',
    existing === directory
      ? `${directory} can be written to`
      : `${directory} does not exist yet and can be made in ${existing}`,
  );
  examineSyncs(findings, syncs_ms);
  const { bavail, bsize, type } = await statfs(existing);
  examineSpace(findings, bavail * bsize);
  if (REMOTE_TYPES.has(type))
    findings.warn(
      'file system',
      'the directory is on another machine',
      'let one process alone use it, or use redis:// for several: their leases need a file system that is local to all of them.',
    );
}

/** The directory itself, or the one in which it would be made. */
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
  const seen = `4 KiB are on the disk after ${figures.p50_ms} ms (at most ${figures.max_ms} ms)`;
  if (figures.p50_ms < SYNC_SLOW_MS) return findings.ok('fsync', seen, figures);
  return findings.warn(
    'fsync',
    seen,
    'use a faster disk, or redis://: the end of every run waits for it.',
    figures,
  );
}

function examineSpace(findings: Findings, free_bytes: number): Finding {
  const figures = { free_bytes };
  const seen = `${Math.floor(free_bytes / MEBIBYTE)} MiB are free`;
  if (free_bytes >= FREE_AMPLE_BYTES) return findings.ok('free space', seen, figures);
  const remedy = 'make room, or set a shorter checkpoint.ttl_s: a full disk costs runs their checkpoints.';
  if (free_bytes >= FREE_MIN_BYTES) return findings.warn('free space', seen, remedy, figures);
  return findings.fail('free space', seen, remedy, figures);
}
