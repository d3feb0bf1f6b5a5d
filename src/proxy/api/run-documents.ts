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

/** Headers of what an owner is shown. */
export const PRIVATE = { 'cache-control': 'private, no-cache, no-store' };

/** See {@link runStatus}, with what is noted of the run beside its journal. Throws `store_unavailable`. */
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
 * A stored run as its owner is shown it. Only calls that are proven closed are listed with their arguments: half a call
 * is of no use except for its name. `held`: as noted.
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

/** The same without anything of what it says. What a damaged journal has lost of the header is `null`. */
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

/** Of a page. */
export const LIMIT_DEFAULT = 20;
export const LIMIT_MAX = 100;
export const RUN_STATES: readonly RunStatus[] = ['running', ...FINAL_STATUSES];

/** Which of an owner's runs are asked for. */
interface ListQuery {
  readonly thread?: string;
  readonly state?: RunStatus;
  readonly limit: number;
  /** The last one that was looked at for the page before. */
  readonly after?: Position;
}

/** Where a run is among those of its owner, whether it is still there or not. */
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

/** Of a page. Throws `invalid_field`. */
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

/** Runs that one page looks into, however few of them are in the state that is asked for. */
const LOOKED_INTO_MAX = 100;
/** How many of them at the same time: each is read as a whole. */
export const READ_AT_ONCE = 4;

interface Found {
  readonly indexed: IndexedRun;
  /** `null` when it is gone: it was purged, or its time is over. */
  readonly stored: StoredRun | null;
}

/**
 * One page of the owner's runs, newest first: of each what there is to tell without what it says. Their states are those of
 * now. A page may hold fewer than `limit` although there are more: `next` says so. Throws `store_unavailable`.
 */
export async function runList(query: ListQuery, owner: Owner, context: RunContext): Promise<object> {
  const { index } = context.store;
  const { after } = query;
  const all = await answerOf(index.list(owner, query.thread), context);
  const rest = after ? all.filter((indexed) => newestFirst(after, indexed) < 0) : all;
  const { page, looked_at } = await lookInto(rest, query, owner, context);
  const gone = looked_at.flatMap(({ indexed, stored }) => (stored ? [] : indexed));
  // The answer does not wait for it, because this page leaves them out all the same.
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
  // Damage may have left no header: then the index alone says which thread it is.
  return thread === undefined || header === undefined || header.thread === thread;
}

const ignore = () => {};
