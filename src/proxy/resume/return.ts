import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { RunHeader } from '../../checkpoint/journal.ts';
import type { RunId, StoredRun } from '../../checkpoint/store.ts';
import { apiError } from '../../errors.ts';
import type { ActiveRun } from '../active-run.ts';
import type { ApiContext } from '../api-context.ts';
import { checkChatRequest } from '../chat-body.ts';
import { FIRST_EPOCH } from '../event-frame.ts';
import { revivedRequestHeaders } from '../headers.ts';
import type { Run } from '../run.ts';
import type { RunOptions } from '../run-options.ts';
import { attend, beforehand } from '../run-session.ts';
import { WIRES } from '../wires/registry.ts';
import type { Cursor } from './cursor.ts';
import { graceOf } from './grace.ts';
import { reachable, replacedFrom } from './reachable.ts';
import type { Reader } from './reader.ts';
import { requestDigest } from './run-lookup.ts';
import { readUpTo } from './stored-runs.ts';

/** A client's return to a run that was begun before. */
export interface Return {
  readonly run: RunId;
  readonly options: RunOptions;
  readonly headers: IncomingHttpHeaders;
  /** What the client has already. */
  readonly last: Cursor;
  /** Payloads of its last events; see {@link Reader}. */
  readonly tail: readonly string[];
  /** The body of the request, where the client sends it again. */
  readonly body?: string;
  readonly active: ActiveRun;
  /** Called when the stream begins. */
  onOpen(): void;
}

/**
 * Delivers what the client does not have yet of the run, and the rest of it.
 * Throws `run_not_found`, `run_mismatch`, `cursor_ahead` or `store_unavailable` while nothing was answered.
 */
export async function returnToRun(back: Return, reply: FastifyReply, context: ApiContext): Promise<void> {
  const { run, active, last, tail, options } = back;
  const checkpoint = readUpTo(last.seq - tail.length, run, active, context);
  const stored = await beforehand(checkpoint, reply, active);
  if (!isSameRequest(stored, back, context)) throw apiError('run_mismatch', { run });
  const epoch = last.epoch ?? epochOfCount(stored, context);
  const reader: Reader = {
    run,
    owner: active.owner,
    cursor: last.seq,
    ...(epoch !== undefined && { epoch }),
    tail,
    signal: active.signal,
    resumable: options.resumable,
    revive: (header) => revive(header, back, context),
    onTakenOver: () => hold(stored, back, context),
  };
  if (isLate(stored, reader) || !reachable(stored, reader)) {
    const seq = Math.min(stored.seq, replacedFrom(stored.takeovers, epoch));
    throw apiError('cursor_ahead', { cursor: last.seq, seq, run });
  }
  await attend(
    {
      run,
      active,
      resumable: options.resumable,
      onOpen: back.onOpen,
      deliver: (client) => context.follow(reader, stored, client, context),
    },
    reply,
    context,
  );
}

/** A live run whose checkpoint has not come to where the client's own word begins. */
const isLate = ({ status, holder, seq }: StoredRun, { cursor, tail }: Reader): boolean =>
  status === 'running' && holder.state === 'alive' && seq < cursor - tail.length;

/** Where nothing is told before it is stored, no takeover puts anything in its place. */
function epochOfCount({ takeovers }: StoredRun, { configuration }: ApiContext): number | undefined {
  if (configuration.checkpoint.durability !== 'write_ahead') return undefined;
  return FIRST_EPOCH + takeovers.length;
}

/** As far as it is known: an answer must not be put together from two requests. */
function isSameRequest({ records }: StoredRun, { body }: Return, { secret }: ApiContext): boolean {
  const header = records[0]?.header;
  if (body === undefined || header?.digest === undefined) return true;
  return header.digest === requestDigest(secret, body, header.events);
}

/** From now on the run goes on here, for a while even without a client, if one of them asked for that. */
function hold({ records }: StoredRun, { run, active, options }: Return, context: ApiContext): void {
  context.registry.hold(run, active);
  const wasResumable = records[0]?.header?.body !== undefined;
  if (options.resumable || wasResumable) active.outlive(run, graceOf(context));
}

/** The run as this replica would go on with it; `undefined` when nobody knows what was asked for, or no route serves it. */
function revive(header: RunHeader | undefined, back: Return, context: ApiContext): Run | undefined {
  const { run, active, options } = back;
  const body = header?.body ?? back.body;
  if (body === undefined) return undefined;
  const request = checkChatRequest(JSON.parse(body));
  const target = context.models.target(request.model);
  if (!target) return undefined;
  const thread = header?.thread ?? options.thread;
  const events = header?.events ?? options.events;
  return {
    id: run,
    owner: active.owner,
    wire: WIRES[header?.wire ?? 'chat_completions'],
    target,
    body,
    digest: requestDigest(context.secret, body, events),
    request,
    headers: revivedRequestHeaders(back.headers, target.upstream),
    events,
    resumable: options.resumable,
    ...(thread !== undefined && { thread }),
    signal: active.signal,
  };
}
