import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { FileStore } from '../../../src/checkpoint/file/file-store.ts';
import { segmentName } from '../../../src/checkpoint/file/names.ts';
import { type Interpretation, interpretRun } from '../../../src/checkpoint/file/run-image.ts';
import { foldJournal } from '../../../src/checkpoint/journal-fold.ts';
import { createSeal, type Seal } from '../../../src/checkpoint/seal.ts';
import type { RunId } from '../../../src/checkpoint/store.ts';
import { COMPLETE, newRunId, OWNER, SEALING_KEY, SMALL_RUN, temporaryDirectory } from '../fixtures.ts';
import { Peer } from './file-peer.ts';

/** How to create a run, and whether it is finished. */
export interface History {
  readonly finished: boolean;
  make(store: FileStore, run: RunId): Promise<void>;
}

export const HISTORIES: Record<string, History> = {
  'a finished run': {
    finished: true,
    async make(store, run) {
      const lease = await store.acquire(run, OWNER);
      for (const record of SMALL_RUN) await store.append(lease, [record]);
      await store.finish(lease, COMPLETE);
    },
  },
  'a run whose replica was killed': {
    finished: false,
    async make(store, run) {
      const lease = await store.acquire(run, OWNER);
      for (const record of SMALL_RUN) await store.append(lease, [record]);
    },
  },
  'a run whose replicas were killed one after the other': {
    finished: false,
    async make(store, run) {
      await store.append(await store.acquire(run, OWNER), SMALL_RUN.slice(0, 2));
      await store.append(await store.acquire(run, OWNER, 1), SMALL_RUN.slice(2, 3));
      await store.append(await store.acquire(run, OWNER, 2), SMALL_RUN.slice(3));
    },
  },
  'a finished run of several epochs': {
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
  const options = { dir, ttl_ms: 3_600_000, lease_ms: 3000, onError } as const;
  const store = new FileStore({ ...options, seal });
  onTestFinished(() => store.close());
  return store;
}

/** The first segment of a directory. */
export const segmentIn = (dir: string): string => join(dir, segmentName(1));

/** A line of the run in a segment, with its position in bytes. */
export interface RunLine {
  /** See `frame.ts`. */
  readonly kind: string;
  readonly start: number;
  /** After the newline. */
  readonly end: number;
}

export function linesOf(segment: Buffer, run: RunId): readonly RunLine[] {
  const lines: RunLine[] = [];
  for (let start = 0; start < segment.length; ) {
    const end = segment.indexOf('\n', start) + 1;
    const [, , kind = '', subject] = segment.toString('latin1', start, end).split(' ');
    if (subject === run) lines.push({ kind, start, end });
    start = end;
  }
  return lines;
}

/** A log with a run that has no holder, to be damaged repeatedly. */
export class Damaged {
  readonly run: RunId;
  readonly segment: Buffer;
  readonly lines: readonly RunLine[];
  readonly finished: boolean;
  readonly #seal: Seal | undefined;
  readonly #dir = temporaryDirectory();

  constructor(run: RunId, segment: Buffer, history: History, seal: Seal | undefined) {
    this.run = run;
    this.segment = segment;
    this.lines = linesOf(segment, run);
    this.finished = history.finished;
    this.#seal = seal;
  }

  /** Reads the run as a process does that starts with this log; undefined if the run is unknown. */
  read(
    changed: Buffer,
    from = 0,
  ): { readonly found: Interpretation | undefined; readonly errors: readonly Error[] } {
    writeFileSync(segmentIn(this.#dir), changed);
    const errors: Error[] = [];
    const peer = new Peer(this.#dir, this.run, { onError: (error) => errors.push(error) });
    const lines = peer.call('read', { run: this.run });
    peer.directory.close();
    if (!lines) return { found: undefined, errors };
    return {
      found: interpretRun(this.run, { ...lines, holder: { state: 'lost' } }, this.#seal, from),
      errors,
    };
  }

  /**
   * Reads the run as a process does that read the log before the change. It knows the old positions, so the length must
   * stay the same.
   */
  readLater(changed: Buffer): Interpretation {
    const lines = Buffer.concat(this.lines.map(({ start, end }) => changed.subarray(start, end)));
    const ended = this.finished ? { ended_at_ms: 1 } : {};
    return interpretRun(this.run, { lines, ...ended, holder: { state: 'lost' } }, this.#seal);
  }

  /** Checks what has to hold after any change. Returns the number of records left. */
  expectPrefix({ stored, damage }: Interpretation): number {
    if (!stored) {
      // Without its opening line, even the owner of the run is unknown.
      expect(damage).toEqual({ record: 0, seq: 0, reason: 'the opening line cannot be read' });
      return 0;
    }
    const count = stored.records.length;
    expect(stored.records).toEqual(SMALL_RUN.slice(0, count));
    expect(stored.seq).toBe(stored.records.at(-1)?.seq ?? 0);
    // The last record closes the call.
    const settled = foldJournal(stored.records).tool_calls.filter(({ closed }) => closed);
    expect(settled).toHaveLength(count === SMALL_RUN.length ? 1 : 0);
    expect(stored.damage).toBe(damage);
    if (damage) expect(damage).toEqual({ record: count, seq: stored.seq, reason: expect.any(String) });
    if (damage) expect(stored.status).not.toBe('complete');
    return count;
  }
}

const made = new Map<string, Promise<{ readonly run: RunId; readonly segment: Buffer }>>();

/** Returns a run made as its history says; all tests share it. */
export async function damagedOf(name: string, seal_name: string): Promise<Damaged> {
  const key = `${name}, ${seal_name}`;
  const history = HISTORIES[name] as History;
  const seal = SEALS[seal_name];
  const known = made.get(key) ?? make(history, seal);
  made.set(key, known);
  const { run, segment } = await known;
  return new Damaged(run, segment, history, seal);
}

async function make(history: History, seal: Seal | undefined) {
  const dir = temporaryDirectory();
  const run = newRunId();
  const store = open(dir, seal);
  await history.make(store, run);
  await store.close();
  return { run, segment: readFileSync(segmentIn(dir)) };
}
