import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { randomNumbers } from '../../../bench/soak/random.ts';
import { FileStore } from '../../../src/checkpoint/file/file-store.ts';
import type { RunId, StoredRun } from '../../../src/checkpoint/store.ts';
import { seedOr } from '../../cases.ts';
import { COMPLETE, OWNER, temporaryDirectory, textOf, textRecord } from '../fixtures.ts';
import { INTERVAL_MS, type KilledWriterReport, wordAt } from './killed-writer-report.ts';

const WRITER = join(import.meta.dirname, 'torture-writer.ts');
const SEED = seedOr(20_261_123);
const KILLS = Number(process.env.HOLDFAST_KILLS ?? 3);
const LIFETIME_MS_MAX = 600;
/** The interval, plus an allowance for a busy machine. */
const LOSS_WINDOW_MS = INTERVAL_MS + 1450;
/** After this many kills, a new process reads the whole log. */
const FRESH_EVERY = 10;
const SETTINGS = { ttl_ms: 3_600_000, lease_ms: 3000 } as const;

class Victim {
  readonly reports: KilledWriterReport[] = [];
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.on('message', (report: KilledWriterReport) => this.reports.push(report));
  }

  static async start(dir: string): Promise<Victim> {
    const child = fork(WRITER, [dir], { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    onTestFinished(() => {
      child.kill('SIGKILL');
    });
    const victim = new Victim(child);
    await once(child, 'message');
    return victim;
  }

  async kill(): Promise<number> {
    const killed_at_ms = Date.now();
    const closed = once(this.#child, 'close');
    this.#child.kill('SIGKILL');
    await closed;
    return killed_at_ms;
  }
}

function open(dir: string): FileStore {
  const store = new FileStore({ dir, ...SETTINGS, onError: (error) => expect.unreachable(error.message) });
  onTestFinished(() => store.close());
  return store;
}

async function read(store: FileStore, run: RunId): Promise<StoredRun> {
  const stored = await store.read(run, OWNER, 0);
  if (!stored) throw new Error(`${run} cannot be read`);
  expect(stored).not.toHaveProperty('damage');
  const expected = Array.from({ length: stored.seq }, (_, seq) => wordAt(seq)).join('');
  // The test appends an `x`, not a word, to the runs of a dead process.
  expect(textOf(stored.records).replace(/x$/, '')).toBe(
    stored.status === 'recovered_from_partial'
      ? expected.slice(0, expected.lastIndexOf(wordAt(stored.seq - 1)))
      : expected,
  );
  return stored;
}

test(
  `processes killed at any moment lose no more than the last moments of their runs (seed ${SEED})`,
  async () => {
    const dir = temporaryDirectory();
    const random = randomNumbers(SEED);
    const store = open(dir);
    const ended: RunId[] = [];
    let victims: readonly Victim[] = await Promise.all([Victim.start(dir), Victim.start(dir)]);
    for (let kill = 1; kill <= KILLS; kill++) {
      await delay(random() * LIFETIME_MS_MAX);
      const at = Math.floor(random() * victims.length);
      const victim = victims[at] as Victim;
      const killed_at_ms = await victim.kill();
      const replacement = Victim.start(dir);

      const last = victim.reports.at(-1) as KilledWriterReport;
      const before = victim.reports.findLast(({ at_ms }) => at_ms < killed_at_ms - LOSS_WINDOW_MS);
      const reader = kill % FRESH_EVERY === 0 ? open(dir) : store;
      for (const [position, { run, stored: seen }] of last.runs.entries()) {
        const stored = await read(reader, run);
        const earlier = before?.runs[position];
        expect(stored.seq).toBeGreaterThanOrEqual(seen);
        if (earlier?.run === run) expect(stored.seq).toBeGreaterThanOrEqual(earlier.recorded);
        ended.push(run);
        if (stored.status !== 'running') continue;
        const lease = await store.acquire(run, OWNER, stored.epoch);
        if (stored.seq > 0) await store.append(lease, [textRecord(stored.seq, 'x')]);
        const isWhole = stored.seq === 0;
        await store.finish(lease, isWhole ? COMPLETE : { status: 'recovered_from_partial', at_ms: 1 });
      }
      if (reader !== store) await reader.close();
      victims = victims.with(at, await replacement);
    }
    for (const victim of victims) await victim.kill();
    const fresh = open(dir);
    for (const run of ended) await read(fresh, run);
  },
  60_000 + KILLS * 20_000,
);
