import type { IncomingHttpHeaders } from 'node:http';
import type { EpochName } from '../../checkpoint/epoch.ts';
import type { RunHeader } from '../../checkpoint/journal.ts';
import type { Owner, RunId } from '../../checkpoint/store.ts';
import { type ApiError, apiError } from '../../lib/errors.ts';
import type { Run } from '../run/context/run.ts';

/** A client's position in a run. */
export interface Cursor {
  /** The ordinal of its last event; 0 if it has none. */
  readonly seq: number;
  /** The epoch in which that event was delivered, if the client knows it. */
  readonly epoch?: EpochName;
}

export const NO_EVENTS: Cursor = { seq: 0 };

/** The `id:` of an event: `<run>.<epoch>.<seq>`. */
const EVENT_ID = /^(run_[\w-]+)\.(\d{1,15}(?:-[\da-f]{1,32})?)\.(\d{1,15})$/;
const ORDINAL = /^\d{1,15}$/;

/** The run named in the id of the last event, if any. */
export const runOfLastEvent = ({ 'last-event-id': id }: IncomingHttpHeaders): string | undefined =>
  EVENT_ID.exec(String(id))?.[1];

/**
 * Parses `Last-Event-ID`: an {@link EVENT_ID}, or the ordinal alone. `undefined` without the header. Throws
 * `invalid_field`.
 */
export function lastEventOf({ 'last-event-id': id }: IncomingHttpHeaders, run: RunId): Cursor | undefined {
  if (id === undefined || id === '') return undefined;
  if (typeof id !== 'string') throw invalidEventId(run);
  if (ORDINAL.test(id)) return { seq: Number(id) };
  const [, of, epoch, seq] = EVENT_ID.exec(id) ?? [];
  if (of !== run || epoch === undefined) throw invalidEventId(run);
  return { seq: Number(seq), epoch };
}

/** Parses `?starting_after=N`. `undefined` if absent. Throws `invalid_field`. */
export function startingAfter(value: unknown): Cursor | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'string' && ORDINAL.test(value)) return { seq: Number(value) };
  throw apiError('invalid_field', {
    param: 'starting_after',
    expected: 'the number of events that you have, 0 for none',
  });
}

const invalidEventId = (run: RunId): ApiError =>
  apiError('invalid_field', {
    param: 'Last-Event-ID',
    expected: `the number of events that you have, or the id of the last one: ${run}.<epoch>.<number>`,
  });

/** A client's own statement of its position. */
export interface Position {
  readonly run: RunId;
  /** The number of events that the client has. */
  readonly cursor: number;
  /** The epoch in the client's last event id, if it sent one; it identifies events of a lost log. */
  readonly epoch?: EpochName;
  /** Payloads of the client's last events, oldest first; the last one is event `cursor`. May be empty. */
  readonly tail: readonly string[];
  /**
   * The wire and mode of the original request, if the client brings it. A log without a header doesn't contain them.
   */
  readonly asked?: Pick<RunHeader, 'wire' | 'events'>;
}

/** A client that returns to a run. */
export interface Reader extends Position {
  readonly owner: Owner;
  /** Aborts when the client disconnects, or with reason `HAND_OVER`. */
  readonly signal: AbortSignal;
  /** The client asked for `id:` lines. */
  readonly resumable: boolean;
  /**
   * The run to relay after a takeover; undefined if its request is unknown. There is no header if the replica was lost
   * before it stored anything: then only the current request describes the run. Must have no side effects, because
   * another replica may win the takeover.
   */
  revive(header: RunHeader | undefined): Run | undefined;
  /** Called once this replica has taken the run over. */
  onTakenOver(): void;
}
