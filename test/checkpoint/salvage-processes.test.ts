import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { FileStore } from '../../src/checkpoint/file/file-store.ts';
import type { JournalRecord } from '../../src/checkpoint/journal.ts';
import type { RunId } from '../../src/checkpoint/store.ts';
import { HEADER_RECORD, newRunId, OWNER, SMALL_RUN, temporaryDirectory, textRecord } from './fixtures.ts';
import { LEASE_MS, SALVAGE_AFTER_MS, type SalvageReport } from './salvage-report.ts';

const PROCESS = join(import.meta.dirname, 'salvaging-process.ts');
const PROCESSES = 3;
const ORPHANS = 90;

/** Starts a process that salvages, and passes on its reports. The returned function stops it. */
function startSalvaging(dir: string, take: (report: SalvageReport) => void): () => Promise<void> {
  const child = fork(PROCESS, [dir], { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const exited = once(child, 'exit');
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  child.on('message', take);
  return async () => {
    child.disconnect();
    await exited;
  };
}

const open = (dir: string) =>
  new FileStore({
    dir,

    ttl_ms: 3_600_000,
    lease_ms: LEASE_MS,
    onError: (error) => expect.unreachable(error.message),
  });

/** Creates runs with these journals, in turn, that have no replica. */
async function orphans(dir: string, journals: readonly (readonly JournalRecord[])[]): Promise<RunId[]> {
  const store = open(dir);
  const runs = await Promise.all(
    Array.from({ length: ORPHANS }, async (_, index) => {
      const lease = await store.acquire(newRunId(), OWNER);
      const journal = journals[index % journals.length] ?? [];
      if (journal.length > 0) await store.append(lease, journal);
      return lease.run;
    }),
  );
  await store.close();
  return runs;
}

test('processes that salvage one directory finalise each orphan once', async () => {
  const dir = temporaryDirectory();
  const runs = await orphans(dir, [[HEADER_RECORD, textRecord(0, 'Kelp')], SMALL_RUN, [HEADER_RECORD]]);
  const reports: SalvageReport[] = [];
  const salvaged = () => reports.flatMap((report) => ('salvaged' in report ? [report] : []));
  const all = Promise.withResolvers<void>();
  const take = (report: SalvageReport) => {
    reports.push(report);
    if (salvaged().length === ORPHANS) all.resolve();
  };
  const stops = Array.from({ length: PROCESSES }, () => startSalvaging(dir, take));
  await all.promise;
  // Wait for a further report, which must not come.
  await delay(2 * SALVAGE_AFTER_MS);
  await Promise.all(stops.map((stop) => stop()));

  expect(reports.filter((report) => 'error' in report)).toEqual([]);
  const done = salvaged();
  expect(done).toHaveLength(ORPHANS);
  expect(new Set(done.map((report) => report.salvaged))).toEqual(new Set(runs));
  expect(reports.filter((report) => 'kept' in report)).toHaveLength(ORPHANS);
  const statuses = new Map(done.map((report) => [report.salvaged, report.status]));
  const store = open(dir);
  onTestFinished(() => store.close());
  for (const [index, run] of runs.entries()) {
    const expected = (['recovered_from_partial', 'complete', 'failed'] as const)[index % 3];
    expect(statuses.get(run)).toBe(expected);
    const stored = await store.read(run, OWNER, 0);
    expect(stored).toMatchObject({ status: expected, epoch: 2 });
    expect(stored?.damage).toBeUndefined();
  }
}, 30_000);
