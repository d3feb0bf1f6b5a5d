import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { decodeRun } from '../../../src/checkpoint/file/file-format.ts';
import { type Interpretation, interpretRun } from '../../../src/checkpoint/file/file-interpretation.ts';
import { FileStore } from '../../../src/checkpoint/file/file-store.ts';
import { foldJournal } from '../../../src/checkpoint/journal-fold.ts';
import { createSeal, type Seal } from '../../../src/checkpoint/seal.ts';
import type { RunId } from '../../../src/checkpoint/store.ts';
import { COMPLETE, newRunId, OWNER, SEALING_KEY, SMALL_RUN, temporaryDirectory } from '../fixtures.ts';

/** How a run came to be: the files it left, in the order of its epochs, and whether it is finished. */
export interface History {
  readonly files: readonly ((run: RunId) => string)[];
  readonly finished: boolean;
  make(store: FileStore, run: RunId): Promise<void>;
}

export const HISTORIES: Record<string, History> = {
  'a finished run': {
    files: [(run) => `${run}.run`],
    finished: true,
    async make(store, run) {
      const lease = await store.acquire(run, OWNER);
      for (const record of SMALL_RUN) await store.append(lease, [record]);
      await store.finish(lease, COMPLETE);
    },
  },
  'a run whose replica was killed': {
    files: [(run) => `${run}.partial`],
    finished: false,
    async make(store, run) {
      const lease = await store.acquire(run, OWNER);
      for (const record of SMALL_RUN) await store.append(lease, [record]);
    },
  },
  'a run whose replicas were killed one after the other': {
    files: [(run) => `${run}.partial`, (run) => `${run}.2.partial`, (run) => `${run}.3.partial`],
    finished: false,
    async make(store, run) {
      await store.append(await store.acquire(run, OWNER), SMALL_RUN.slice(0, 2));
      await store.append(await store.acquire(run, OWNER, 1), SMALL_RUN.slice(2, 3));
      await store.append(await store.acquire(run, OWNER, 2), SMALL_RUN.slice(3));
    },
  },
  'a finished run of several epochs': {
    files: [(run) => `${run}.run`],
    finished: true,
    async make(store, run) {
      await store.append(await store.acquire(run, OWNER), SMALL_RUN.slice(0, 2));
      const lease = await store.acquire(run, OWNER, 1);
      await store.append(lease, SMALL_RUN.slice(2));
      await store.finish(lease, COMPLETE);
    },
  },
};

export const SEALS: Record<string, Seal | undefined> = {
  plain: undefined,
  sealed: createSeal([SEALING_KEY]),
};

export function open(dir: string, seal: Seal | undefined, errors?: Error[]): FileStore {
  const onError = (error: Error) => errors?.push(error) ?? expect.unreachable(error.message);
  const options = { dir, fsync: 'never', ttl_ms: 3_600_000, lease_ms: 3000, onError } as const;
  const store = new FileStore({ ...options, seal });
  onTestFinished(() => store.close());
  return store;
}

/** The files of a run that nobody holds any more, to be damaged again and again. */
export class Damaged {
  readonly run: RunId;
  readonly intact: readonly Buffer[];
  readonly #history: History;
  readonly #seal: Seal | undefined;

  constructor(run: RunId, intact: readonly Buffer[], history: History, seal: Seal | undefined) {
    this.run = run;
    this.intact = intact;
    this.#history = history;
    this.#seal = seal;
  }

  /** Reads the run with one file changed. */
  read(file: number, changed: Buffer): Interpretation {
    const image = decodeRun(this.intact.with(file, changed), this.run, this.#seal);
    const found = this.#history.finished ? { image, finished_at_ms: 1 } : { image };
    return interpretRun(found, { state: 'lost' });
  }

  /** What has to hold whatever was changed. `silent`: the change cannot be noticed. Returns how many records are left. */
  expectPrefix({ stored, damage }: Interpretation, silent: boolean): number {
    if (!stored) {
      // Not even its owner can be told.
      expect(damage).toEqual({ record: 0, seq: 0, reason: 'the opening line cannot be read' });
      return 0;
    }
    const count = stored.records.length;
    expect(stored.records).toEqual(SMALL_RUN.slice(0, count));
    expect(stored.seq).toBe(stored.records.at(-1)?.seq ?? 0);
    // The call is settled by the last record.
    const settled = foldJournal(stored.records).tool_calls.filter(({ closed }) => closed);
    expect(settled).toHaveLength(count === SMALL_RUN.length ? 1 : 0);
    expect(stored.damage).toBe(damage);
    if (silent) {
      expect(damage).toBeUndefined();
    } else {
      expect(damage).toEqual({ record: count, seq: stored.seq, reason: expect.any(String) });
      expect(stored.status).toBe(this.#history.finished ? 'recovered_from_partial' : 'running');
    }
    return count;
  }
}

const made = new Map<string, Promise<Damaged>>();

/** The same files for every test that wants them. */
export function damagedOf(name: string, seal_name: string): Promise<Damaged> {
  const key = `${name}, ${seal_name}`;
  const known = made.get(key) ?? makeDamaged(HISTORIES[name] as History, SEALS[seal_name]);
  made.set(key, known);
  return known;
}

async function makeDamaged(history: History, seal: Seal | undefined): Promise<Damaged> {
  const dir = temporaryDirectory();
  const run = newRunId();
  const store = open(dir, seal);
  await history.make(store, run);
  await store.close();
  const files = history.files.map((name) => readFileSync(join(dir, name(run))));
  return new Damaged(run, files, history, seal);
}
