import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { FileStore } from '../../../src/checkpoint/file/file-store.ts';
import { OWNER, temporaryDirectory, textOf, textRecord } from '../fixtures.ts';
import { INTERVAL_MS, type KilledWriterReport, wordAt } from './killed-writer-report.ts';

const WRITER = join(import.meta.dirname, 'killed-writer.ts');
/** The interval, plus an allowance for a busy machine. */
const LOSS_WINDOW_MS = INTERVAL_MS + 450;

function startWriter(dir: string): { child: ChildProcess; reports: KilledWriterReport[] } {
  const child = fork(WRITER, [dir], { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const reports: KilledWriterReport[] = [];
  child.on('message', (report: KilledWriterReport) => reports.push(report));
  return { child, reports };
}

async function killAfter(dir: string, lifetime_ms: number) {
  const { child, reports } = startWriter(dir);
  await once(child, 'message');
  await delay(lifetime_ms);
  const killed_at_ms = Date.now();
  child.kill('SIGKILL');
  await once(child, 'close');
  return { reports, killed_at_ms };
}

test('a killed process loses no more than the last moments of any run, and nothing it saw stored', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: LOSS_WINDOW_MS + 250 }), async (lifetime_ms) => {
      const dir = temporaryDirectory();
      const { reports, killed_at_ms } = await killAfter(dir, lifetime_ms);
      const last = reports.at(-1) as KilledWriterReport;
      const before = reports.findLast(({ at_ms }) => at_ms < killed_at_ms - LOSS_WINDOW_MS);

      const store = new FileStore({
        dir,

        ttl_ms: 3_600_000,
        lease_ms: 3000,
        onError: () => {},
      });
      try {
        for (const [position, { run, stored: seen }] of last.runs.entries()) {
          const stored = await store.read(run, OWNER, 0);
          if (!stored) throw new Error('the run is gone');
          expect(stored.status).toBe('running');
          expect(stored.seq).toBeGreaterThanOrEqual(seen);
          expect(stored.seq).toBeGreaterThanOrEqual(before?.runs[position]?.recorded ?? 0);
          expect(textOf(stored.records)).toBe(
            Array.from({ length: stored.seq }, (_, seq) => wordAt(seq)).join(''),
          );
          // The successor continues from there.
          const lease = await store.acquire(run, OWNER, 1);
          expect(lease.epoch).toBe(2);
          if (stored.seq > 0)
            expect(await store.append(lease, [textRecord(stored.seq, 'x')])).toBe(stored.seq + 1);
        }
      } finally {
        await store.close();
      }
    }),
    { numRuns: 3, endOnFailure: true },
  );
}, 30_000);
