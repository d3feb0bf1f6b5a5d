import { createHash } from 'node:crypto';
import type { RunHeader } from './journal.ts';
import type { Seal } from './seal.ts';
import { isRunId, type Owner, type RunId } from './store.ts';

/** Limit per owner. Above it, the oldest run is no longer listed; the run itself stays. */
export const RUNS_INDEXED_MAX = 1000;
/** The assumed longest duration of a run. An entry is kept for this long plus the time that runs are kept. */
export const RUN_LASTS_MS = 86_400_000;

const TAG_BYTES = 12;
const ENTRY = /^(\d{1,15})\.(run_[\w-]+)(?:\.([\w-]{16}))?$/;

/** One run in the index of its owner. */
export interface IndexedRun {
  readonly run: RunId;
  readonly created_at_ms: number;
  /** The stored form of the entry. */
  readonly entry: string;
}

/**
 * Lists an owner's runs. A run is entered once, with its header. An entry may outlive its run for a while, and a run
 * may have none, because the store couldn't enter it or a version without an index began it.
 */
export interface RunIndex {
  /** At most {@link RUNS_INDEXED_MAX}, newest first. `thread`: only that thread's runs. */
  list(owner: Owner, thread?: string): Promise<readonly IndexedRun[]>;
  /** Removes the entries of runs that are gone. */
  forget(owner: Owner, entries: readonly IndexedRun[]): Promise<void>;
}

/** Encodes a run's start, its id and a digest of its thread: `<ms>.<run>` or `<ms>.<run>.<tag>`. */
export function encodeEntry(run: RunId, created_at_ms: number, tag?: string): string {
  const entry = `${Math.floor(created_at_ms)}.${run}`;
  return tag === undefined ? entry : `${entry}.${tag}`;
}

/** The entry that a run with this header gets today. */
export function entryOf(
  owner: Owner,
  run: RunId,
  { created_at_ms, thread }: RunHeader,
  seal: Seal | undefined,
): string {
  const tag = thread === undefined ? undefined : threadTags(owner, thread, seal)[0];
  return encodeEntry(run, created_at_ms, tag);
}

/** Undefined if the text isn't an entry. */
export function decodeEntry(entry: string): (IndexedRun & { readonly tag?: string }) | undefined {
  const [, created_at_ms, run = '', tag] = ENTRY.exec(entry) ?? [];
  if (!isRunId(run)) return undefined;
  return { run, created_at_ms: Number(created_at_ms), entry, ...(tag !== undefined && { tag }) };
}

/**
 * All possible tags of a thread's entries, starting with the one for new entries. With a seal they are keyed, so that
 * they don't reveal the thread and it can't be guessed; the others belong to older keys and to entries made without a
 * seal.
 */
export function threadTags(owner: Owner, thread: string, seal: Seal | undefined): [string, ...string[]] {
  const text = JSON.stringify([owner, 'thread', thread]);
  const plain = shortened(createHash('sha256').update(text).digest());
  const [first, ...others] = seal?.for('index').digests(text).map(shortened) ?? [];
  return first === undefined ? [plain] : [first, ...others, plain];
}

/** Decodes stored entries, newest first, skipping invalid ones. `thread`: see {@link RunIndex.list}. */
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

/** The order of runs that began in the same millisecond is arbitrary but stable. */
export function newestFirst(one: Began, other: Began): number {
  const later_ms = other.created_at_ms - one.created_at_ms;
  if (later_ms !== 0) return later_ms;
  return one.run < other.run ? 1 : one.run > other.run ? -1 : 0;
}

type Began = Pick<IndexedRun, 'run' | 'created_at_ms'>;

const shortened = (digest: Buffer): string => digest.subarray(0, TAG_BYTES).toString('base64url');
