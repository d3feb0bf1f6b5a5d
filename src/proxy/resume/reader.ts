import type { IncomingHttpHeaders } from 'node:http';
import type { EpochName } from '../../checkpoint/epoch.ts';
import type { RunHeader } from '../../checkpoint/journal.ts';
import type { Owner, RunId } from '../../checkpoint/store.ts';
import { type ApiError, apiError } from '../../lib/errors.ts';
import type { Run } from '../run/context/run.ts';

/** How much of a run a client has. */
export interface Cursor {
  /** The ordinal of its last event; 0 when it has none. */
  readonly seq: number;
  /** The epoch that event was delivered under, where the client knows it. */
  readonly epoch?: EpochName;
}

export const NO_EVENTS: Cursor = { seq: 0 };

/** The `id:` of an event: `<run>.<epoch>.<seq>`. */
const EVENT_ID = /^(run_[\w-]+)\.(\d{1,15}(?:-[\da-f]{1,32})?)\.(\d{1,15})$/;
const ORDINAL = /^\d{1,15}$/;

/** The run that the last event was of, where its id says so. */
export const runOfLastEvent = ({ 'last-event-id': id }: IncomingHttpHeaders): string | undefined =>
  EVENT_ID.exec(String(id))?.[1];

/** `Last-Event-ID`: what {@link EVENT_ID} says, or the ordinal alone. `undefined` when there is none. */
export function lastEventOf({ 'last-event-id': id }: IncomingHttpHeaders, run: RunId): Cursor | undefined {
  if (id === undefined || id === '') return undefined;
  if (typeof id !== 'string') throw invalidEventId(run);
  if (ORDINAL.test(id)) return { seq: Number(id) };
  const [, of, epoch, seq] = EVENT_ID.exec(id) ?? [];
  if (of !== run || epoch === undefined) throw invalidEventId(run);
  return { seq: Number(seq), epoch };
}

/** `?starting_after=N`. `undefined` when it is not given. */
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

/** What a client says it has of a run. */
export interface Position {
  readonly run: RunId;
  /** How many events of the run the client has. */
  readonly cursor: number;
  /** The epoch in the id of the client's last event, if it sent one: it identifies events of a lost log. */
  readonly epoch?: EpochName;
  /** Payloads of the last events the client has, oldest first, the last one being event `cursor`. May be empty. */
  readonly tail: readonly string[];
  /** How the run was asked for, if the client brings its request: a log without a header does not say. */
  readonly asked?: Pick<RunHeader, 'wire' | 'events'>;
}

/** A client that comes back to a run. */
export interface Reader extends Position {
  readonly owner: Owner;
  /** Aborts when the client has gone, or with `HAND_OVER` as its reason. */
  readonly signal: AbortSignal;
  /** `id:` lines were asked for. */
  readonly resumable: boolean;
  /**
   * The run to relay if it is taken over; undefined when its request is not known. There is no header when the
   * replica died before it stored anything: then only the request that comes now can say what the run is. Must have
   * no effect, for another replica may be the one that takes it over.
   */
  revive(header: RunHeader | undefined): Run | undefined;
  /** From now on the run is this replica's to deliver. */
  onTakenOver(): void;
}
