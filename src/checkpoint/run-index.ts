import { createHash } from 'node:crypto';
import type { RunHeader } from './journal.ts';
import type { Seal } from './seal.ts';
import { isRunId, type Owner, type RunId } from './store.ts';

/** Of one owner. Beyond that the oldest run is listed no longer; the run itself stays. */
export const RUNS_INDEXED_MAX = 1000;
/** A run may last that long: its entry is kept from its beginning for that, and for the time that runs are kept. */
export const RUN_LASTS_MS = 86_400_000;

const TAG_BYTES = 12;
const ENTRY = /^(\d{1,15})\.(run_[\w-]+)(?:\.([\w-]{16}))?$/;

/** One run in the index of its owner. */
export interface IndexedRun {
  readonly run: RunId;
  readonly created_at_ms: number;
  /** What stands in the store for it. */
  readonly entry: string;
}

/**
 * Which runs an owner has. A run is entered once, with its header; an entry may be there a while longer than its run, and a
 * run that was begun while its store could not enter it, or by a version that had no index, has none.
 */
export interface RunIndex {
  /** At most {@link RUNS_INDEXED_MAX}, newest first. `thread`: those of that thread alone. */
  list(owner: Owner, thread?: string): Promise<readonly IndexedRun[]>;
  /** Removes entries whose runs are gone. */
  forget(owner: Owner, entries: readonly IndexedRun[]): Promise<void>;
}

/** Says when a run began, which it is, and by a digest of which thread: `<ms>.<run>` or `<ms>.<run>.<tag>`. */
export function encodeEntry(run: RunId, created_at_ms: number, tag?: string): string {
  const entry = `${Math.floor(created_at_ms)}.${run}`;
  return tag === undefined ? entry : `${entry}.${tag}`;
}

/** The entry of the run that has this header, as it is made today. */
export function entryOf(
  owner: Owner,
  run: RunId,
  { created_at_ms, thread }: RunHeader,
  seal: Seal | undefined,
): string {
  const tag = thread === undefined ? undefined : threadTags(owner, thread, seal)[0];
  return encodeEntry(run, created_at_ms, tag);
}

/** Undefined for what is no entry. */
export function decodeEntry(entry: string): (IndexedRun & { readonly tag?: string }) | undefined {
  const [, created_at_ms, run = '', tag] = ENTRY.exec(entry) ?? [];
  if (!isRunId(run)) return undefined;
  return { run, created_at_ms: Number(created_at_ms), entry, ...(tag !== undefined && { tag }) };
}

/**
 * Every tag that entries of a thread may bear, first the one that new entries get. With a seal it is keyed, so that a thread
 * can neither be read nor guessed from it; the others are those of older keys, and of the time before there was a seal.
 */
export function threadTags(owner: Owner, thread: string, seal: Seal | undefined): [string, ...string[]] {
  const text = JSON.stringify([owner, 'thread', thread]);
  const plain = shortened(createHash('sha256').update(text).digest());
  const [first, ...others] = seal?.for('index').digests(text).map(shortened) ?? [];
  return first === undefined ? [plain] : [first, ...others, plain];
}

/** What is stored as entries, newest first and without what is none. `thread`: of {@link RunIndex.list}. */
export function indexedRuns(
  entries: Iterable<string>,
  owner: Owner,
  thread: string | undefined,
  seal: Seal | undefined,
): readonly IndexedRun[] {
  const tags = thread === undefined ? undefined : new Set(threadTags(owner, thread, seal));
  const runs: IndexedRun[] = [];
  for (const entry of entries) {
    const decoded = decodeEntry(entry);
    if (decoded && (!tags || (decoded.tag !== undefined && tags.has(decoded.tag)))) runs.push(decoded);
  }
  return runs.sort(newestFirst);
}

/** Of those that began in the same millisecond, always the same one is first. */
export function newestFirst(one: Began, other: Began): number {
  const later_ms = other.created_at_ms - one.created_at_ms;
  if (later_ms !== 0) return later_ms;
  return one.run < other.run ? 1 : one.run > other.run ? -1 : 0;
}

type Began = Pick<IndexedRun, 'run' | 'created_at_ms'>;

const shortened = (digest: Buffer): string => digest.subarray(0, TAG_BYTES).toString('base64url');
