import { decodeEntry, encodeEntry, type IndexedRun } from '../../checkpoint/run-index.ts';
import { FINAL_STATUSES, type RunStatus } from '../../checkpoint/store.ts';
import { apiError } from '../../lib/errors.ts';
import { THREAD_CHARACTERS_MAX } from './run-options.ts';

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 100;
const STATES: readonly RunStatus[] = ['running', ...FINAL_STATUSES];

/** Which of an owner's runs are asked for. */
export interface ListQuery {
  readonly thread?: string;
  readonly state?: RunStatus;
  readonly limit: number;
  /** The last one that was looked at for the page before. */
  readonly after?: Position;
}

/** Where a run is among those of its owner, whether it is still there or not. */
export type Position = Pick<IndexedRun, 'run' | 'created_at_ms'>;

export const positionOf = ({ run, created_at_ms }: Position): string => encodeEntry(run, created_at_ms);

/** `?thread=…&state=…&limit=…&after=…`. Throws `invalid_field`. */
export function listQuery({ thread, state, limit, after }: Readonly<Record<string, unknown>>): ListQuery {
  return {
    limit: limit === undefined ? LIMIT_DEFAULT : limitOf(limit),
    ...(thread !== undefined && { thread: threadOf(thread) }),
    ...(state !== undefined && { state: stateOf(state) }),
    ...(after !== undefined && { after: afterOf(after) }),
  };
}

function threadOf(value: unknown): string {
  if (typeof value === 'string' && value !== '' && value.length <= THREAD_CHARACTERS_MAX) return value;
  throw invalid('thread', `one thread of 1 to ${THREAD_CHARACTERS_MAX} characters`);
}

function stateOf(value: unknown): RunStatus {
  const state = STATES.find((known) => known === value);
  if (state === undefined) throw invalid('state', `one of ${STATES.join(', ')}`);
  return state;
}

function limitOf(value: unknown): number {
  const limit = typeof value === 'string' && /^\d{1,3}$/.test(value) ? Number(value) : 0;
  if (limit < 1 || limit > LIMIT_MAX) throw invalid('limit', `a whole number from 1 to ${LIMIT_MAX}`);
  return limit;
}

function afterOf(value: unknown): Position {
  const position = typeof value === 'string' ? decodeEntry(value) : undefined;
  if (position === undefined) throw invalid('after', 'the `next` of the page before');
  return position;
}

const invalid = (param: string, expected: string) => apiError('invalid_field', { param, expected });
