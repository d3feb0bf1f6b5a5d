import { epochAt } from '../../checkpoint/epoch.ts';
import { type FoldedSegment, foldJournal, settledCalls } from '../../checkpoint/journal-fold.ts';
import { decodeEntry, encodeEntry, type IndexedRun, newestFirst } from '../../checkpoint/run-index.ts';
import {
  FINAL_STATUSES,
  type Owner,
  type RunEnd,
  type RunId,
  type RunStatus,
  type StoredRun,
} from '../../checkpoint/store.ts';
import { partsOf } from '../../plans/outcome.ts';
import type { HeldCalls } from '../../plans/tool-call.ts';
import { answerOf } from '../resume/stored-runs.ts';
import type { RunContext } from '../run/context/run-context.ts';
import { readHeldCalls, unfinishedCalls } from '../run/notices/held-calls.ts';
import { invalid, NAME_CHARACTERS_MAX } from './request-fields.ts';

/** Headers for documents that only their owner may see. */
export const PRIVATE = { 'cache-control': 'private, no-cache, no-store' };

/** {@link runStatus}, including notes kept beside the journal. Throws `store_unavailable`. */
export async function runDocument(
  run: RunId,
  owner: Owner,
  stored: StoredRun,
  context: RunContext,
): Promise<object> {
  const isWhole = stored.status === 'complete';
  const held = isWhole ? undefined : await answerOf(readHeldCalls(context.store.notes, owner, run), context);
  return runStatus(run, stored, held);
}

/**
 * The document of a stored run for its owner. Only calls proven complete appear with arguments: a cut call is useful
 * only for its name. `held`: as noted in the store.
 */
export function runStatus(run: RunId, stored: StoredRun, held?: HeldCalls): object {
  const journal = foldJournal(stored.records);
  const { text, reasoning, refusal, providerTools, finish, segments } = journal;
  const calls = settledCalls(journal);
  return {
    ...runSummary(run, stored),
    text,
    reasoning,
    tool_calls: calls.map(({ id, name, arguments: json }) => ({ id, name, arguments: json })),
    unfinished_calls: stored.status === 'complete' ? [] : unfinishedCalls(journal, held),
    parts: partsOf({ reasoning, text, refusal, calls, providerTools }),
    segments: segments.map((segment) => segmentOf(segment, stored)),
    finish_reason: finish ?? null,
  };
}

export interface RunSummary {
  readonly status: RunStatus;
  readonly [field: string]: unknown;
}

/** The document without the answer. Header fields lost to a damaged journal are `null`. */
export function runSummary(run: RunId, stored: StoredRun): RunSummary {
  const header = stored.records[0]?.header;
  return {
    id: run,
    object: 'holdfast.run',
    wire: header?.wire ?? null,
    status: stored.status,
    created_at: header ? seconds(header.created_at_ms) : null,
    model: header?.model ?? null,
    upstream: header?.upstream ?? null,
    thread: header?.thread ?? null,
    task: header?.step?.task ?? null,
    step: header?.step?.number ?? null,
    step_name: header?.step?.name ?? null,
    continues: header?.continues ?? null,
    cursor: stored.seq,
    epoch: stored.epoch,
    takeovers: stored.takeovers.length,
    holder: stored.holder.state,
    partial: stored.status !== 'complete',
    end: stored.end ? endOf(stored.end) : null,
  };
}

const segmentOf = (segment: FoldedSegment, { takeovers }: StoredRun) => ({
  attempt: segment.attempt ?? null,
  epoch: epochAt(segment.from, takeovers),
  upstream: segment.upstream ?? null,
  model: segment.model ?? null,
  mode: segment.mode,
  plan: segment.plan ?? null,
  cause: segment.cause ?? null,
  compressed: segment.compressed ?? null,
  from: segment.from,
  to: segment.to,
  characters: segment.characters,
  discarded: segment.discarded,
});

const endOf = ({ status, at_ms, cause }: RunEnd) => ({ status, at: seconds(at_ms), cause: cause ?? null });

export const seconds = (time_ms: number): number => Math.floor(time_ms / 1000);

/** Page size. */
export const LIMIT_DEFAULT = 20;
export const LIMIT_MAX = 100;
export const RUN_STATES: readonly RunStatus[] = ['running', ...FINAL_STATUSES];

/** Filters and paging of a list of runs. */
interface ListQuery {
  readonly thread?: string;
  readonly state?: RunStatus;
  readonly limit: number;
  /** The last run examined for the previous page. */
  readonly after?: Position;
}

/** A run's place in the list of its owner, whether it still exists or not. */
type Position = Pick<IndexedRun, 'run' | 'created_at_ms'>;

const positionOf = ({ run, created_at_ms }: Position): string => encodeEntry(run, created_at_ms);

/** `?thread=…&state=…&limit=…&after=…`. Throws `invalid_field`. */
export function listQuery({ thread, state, limit, after }: Readonly<Record<string, unknown>>): ListQuery {
  return {
    limit: limitOf(limit),
    ...(thread !== undefined && { thread: threadOf(thread) }),
    ...(state !== undefined && { state: stateOf(state) }),
    ...(after !== undefined && { after: afterOf(after) }),
  };
}

function threadOf(value: unknown): string {
  if (typeof value === 'string' && value !== '' && value.length <= NAME_CHARACTERS_MAX) return value;
  throw invalid('thread', `one thread of 1 to ${NAME_CHARACTERS_MAX} characters`);
}

function stateOf(value: unknown): RunStatus {
  const state = RUN_STATES.find((known) => known === value);
  if (state === undefined) throw invalid('state', `one of ${RUN_STATES.join(', ')}`);
  return state;
}

/** The page size. Throws `invalid_field`. */
export function limitOf(value: unknown = String(LIMIT_DEFAULT)): number {
  const limit = typeof value === 'string' && /^\d{1,3}$/.test(value) ? Number(value) : 0;
  if (limit < 1 || limit > LIMIT_MAX) throw invalid('limit', `a whole number from 1 to ${LIMIT_MAX}`);
  return limit;
}

function afterOf(value: unknown): Position {
  const position = typeof value === 'string' ? decodeEntry(value) : undefined;
  if (position === undefined) throw invalid('after', 'the `next` of the page before');
  return position;
}

/** Runs examined per page, however few match the filter. */
const LOOKED_INTO_MAX = 100;
/** Concurrent reads, because each loads a whole run. */
export const READ_AT_ONCE = 4;

interface Found {
  readonly indexed: IndexedRun;
  /** `null` if it was purged or has expired. */
  readonly stored: StoredRun | null;
}

/**
 * One page of the owner's runs, newest first, without their answers. States are current. A page may hold fewer than
 * `limit` runs although `next` is set. Throws `store_unavailable`.
 */
export async function runList(query: ListQuery, owner: Owner, context: RunContext): Promise<object> {
  const { index } = context.store;
  const { after } = query;
  const all = await answerOf(index.list(owner, query.thread), context);
  const rest = after ? all.filter((indexed) => newestFirst(after, indexed) < 0) : all;
  const { page, looked_at } = await lookInto(rest, query, owner, context);
  const gone = looked_at.flatMap(({ indexed, stored }) => (stored ? [] : indexed));
  // Not awaited, because this page omits them anyway.
  void index.forget(owner, gone).catch(ignore);
  const last = looked_at.at(-1)?.indexed;
  const has_more = looked_at.length < rest.length;
  return { object: 'list', data: page, has_more, next: has_more && last ? positionOf(last) : null };
}

async function lookInto(runs: readonly IndexedRun[], query: ListQuery, owner: Owner, context: RunContext) {
  const page: object[] = [];
  const looked_at: Found[] = [];
  let known = 0;
  while (looked_at.length < runs.length && page.length < query.limit && known < LOOKED_INTO_MAX) {
    const count = Math.min(READ_AT_ONCE, query.limit - page.length, LOOKED_INTO_MAX - known);
    const next = runs.slice(looked_at.length, looked_at.length + count);
    const found = await Promise.all(next.map((indexed) => find(indexed, owner, context)));
    looked_at.push(...found);
    for (const { indexed, stored } of found) {
      if (!stored) continue;
      known++;
      if (isWanted(stored, query)) page.push(runSummary(indexed.run, stored));
    }
  }
  return { page, looked_at };
}

async function find(indexed: IndexedRun, owner: Owner, context: RunContext): Promise<Found> {
  return { indexed, stored: await answerOf(context.store.read(indexed.run, owner, 0), context) };
}

function isWanted({ status, records }: StoredRun, { thread, state }: ListQuery): boolean {
  if (state !== undefined && status !== state) return false;
  const header = records[0]?.header;
  // Damage may have removed the header; then only the index knows the thread.
  return thread === undefined || header === undefined || header.thread === thread;
}

const ignore = () => {};
