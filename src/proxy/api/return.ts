import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { RunHeader, WireName } from '../../checkpoint/journal.ts';
import type { RunId, StoredRun } from '../../checkpoint/store.ts';
import type { UpstreamConfiguration } from '../../config/configuration.ts';
import { apiError } from '../../lib/errors.ts';
import { reachable, unreachable } from '../resume/reachable.ts';
import type { Cursor, Reader } from '../resume/reader.ts';
import { requestDigest } from '../resume/request-digest.ts';
import type { Left } from '../resume/run-lookup.ts';
import { isLeftOver } from '../resume/stored-ending.ts';
import { readUpTo } from '../resume/stored-runs.ts';
import { successorOf } from '../resume/succession.ts';
import { endsWithoutRequest } from '../resume/takeover.ts';
import type { Run } from '../run/context/run.ts';
import type { ActiveRun } from '../run/run-registry.ts';
import { compressionOfRun, targetsOfRun } from '../run/targets/targets-of-run.ts';
import { revivedRequestHeaders } from '../upstream/headers.ts';
import type { RouteUse } from '../upstream/route-table.ts';
import { WIRES, wireOf } from '../wires/registry.ts';
import type { ApiContext } from './api-context.ts';
import type { Caller } from './caller.ts';
import { attend, beforehand, detachTimeoutOf, type WantedDocument } from './respond.ts';
import type { RunOptions } from './run-options.ts';

/** What a stored event takes besides its text. */
const EVENT_BYTES = 256;

/** The request of a run, as it comes again. */
export interface RepeatedRequest {
  readonly wire: WireName;
  readonly body: string;
}

/** A client's return to a run that was begun before. */
export interface Return {
  readonly run: RunId;
  readonly options: RunOptions;
  readonly headers: IncomingHttpHeaders;
  readonly caller: Caller;
  /** What the client has already. */
  readonly last: Cursor;
  /** Payloads of its last events; see {@link Reader}. */
  readonly tail: readonly string[];
  /** The request, where the client sends it again. */
  readonly repeated?: RepeatedRequest;
  readonly active: ActiveRun;
  /** Set where the client is to have the whole answer as one document. */
  readonly document?: WantedDocument;
  /** Called when the answer begins, of this run or of the one that continues what is left of it. */
  onOpen(run: RunId): void;
  /** Called when the client has gone before it had all of the answer. */
  onLeft(run: RunId, left: Left): void;
}

/**
 * Delivers what the client does not have yet of the run, and the rest of it.
 * Throws `run_not_found`, `run_mismatch`, `unknown_client`, `route_not_allowed`, `cursor_ahead`, `tail_incomplete`, `tail_mismatch`, `not_resumable`, `memory_exhausted` or `store_unavailable` while nothing was answered.
 */
export async function returnToRun(back: Return, reply: FastifyReply, context: ApiContext): Promise<void> {
  const { run, active, last, tail, options, repeated } = back;
  const asked = repeated && { wire: repeated.wire, events: options.events };
  const checkpoint = readUpTo(last.seq - tail.length, run, active, context);
  const stored = await beforehand(checkpoint, reply, active);
  active.memory.take(bytesHeldBy(stored));
  if (!isSameRequest(stored, back, context)) throw apiError('run_mismatch', { run });
  back.caller.admit(() => useOf(stored.records[0]?.header, back, context));
  const successor = await beforehand(successorFor(stored, back, context), reply, active);
  if (successor !== undefined) return returnToRun(asOf(successor, back), reply, context);
  const { epoch } = last;
  const reader: Reader = {
    run,
    owner: active.owner,
    cursor: last.seq,
    ...(epoch !== undefined && { epoch }),
    tail,
    ...(asked && { asked }),
    signal: active.signal,
    resumable: options.resumable,
    revive: (header) => revive(header, back, context),
    onTakenOver: () => hold(stored, back, context),
  };
  if (isLate(stored, reader) || !reachable(stored, reader)) throw unreachable(stored, reader);
  if (isUnknown(stored, reader)) throw apiError('not_resumable');
  await attend(
    {
      run,
      wire: wireOf(stored, asked).name,
      active,
      resumable: options.resumable,
      ...(back.document && { document: back.document }),
      onOpen: () => back.onOpen(run),
      onLeft: () => left(stored, back, context),
      deliver: (client) => context.follow(reader, stored, client, context),
    },
    reply,
    context,
  );
}

/**
 * The run that continues what is left of this one, where it has ended early and its request is known: the client has
 * sent it again, or it was kept for a run whose journal was damaged since. `undefined` where there is none.
 */
async function successorFor(
  stored: StoredRun,
  { run, active, options, repeated }: Return,
  context: ApiContext,
): Promise<RunId | undefined> {
  const header = stored.records[0]?.header;
  const body = repeated?.body ?? (stored.damage && header?.body);
  if (!header || body === undefined || !isLeftOver(stored)) return undefined;
  const wire = WIRES[header.wire];
  if (!wire.facts(wire.request(JSON.parse(body))).spliceable) return undefined;
  const digest = requestDigest(context.secret, { wire: header.wire, events: header.events, body });
  const kept = options.resumable ? { body } : {};
  return successorOf({ run, owner: active.owner, stored, digest, ...kept }, context);
}

/** The events that the client has are those of the successor; the epochs of its ids are not. */
const asOf = (run: RunId, back: Return): Return => ({ ...back, run, last: { seq: back.last.seq } });

/** An estimate: an event is held as its payload and as what it says. */
function bytesHeldBy({ records }: StoredRun): number {
  let bytes = 0;
  for (const { events } of records)
    for (const { payload = '' } of events) bytes += EVENT_BYTES + 2 * payload.length;
  return bytes;
}

/** A live run whose checkpoint has not come to where the client's own word begins. */
const isLate = ({ status, holder, seq }: StoredRun, { cursor, tail }: Reader): boolean =>
  status === 'running' && holder.state === 'alive' && seq < cursor - tail.length;

/** No replica delivers it any more, and neither its request nor its wire is known. */
const isUnknown = (stored: StoredRun, reader: Reader): boolean =>
  stored.status === 'running' &&
  stored.holder.state !== 'alive' &&
  stored.records.length === 0 &&
  reader.asked === undefined &&
  !endsWithoutRequest(stored, reader);

/** The client has gone again: what it leaves is a run that continues without it, or ends, or is as it was found. */
function left(
  { records }: StoredRun,
  { run, active, options, onLeft, onOpen }: Return,
  { registry }: ApiContext,
): void {
  if (options.resumable || records[0]?.header?.body !== undefined) onLeft(run, 'detached');
  else if (registry.holder(run) === active) onLeft(run, 'ending');
  else onOpen(run);
}

/** As far as it is known: an answer must not be put together from two requests. */
function isSameRequest(
  { records }: StoredRun,
  { repeated, document }: Return,
  { secret }: ApiContext,
): boolean {
  const header = records[0]?.header;
  // Of calls that were shown while they came, a document could not tell those that were cut.
  if (document && header && header.events !== 'none') return false;
  if (repeated === undefined || header?.digest === undefined) return true;
  return header.digest === requestDigest(secret, { ...repeated, events: header.events });
}

/** From now on the run continues here, for a while even without a client, if a client asked for that. */
function hold({ records }: StoredRun, { run, active, options }: Return, context: ApiContext): void {
  context.registry.hold(run, active);
  const wasResumable = records[0]?.header?.body !== undefined;
  if (options.resumable || wasResumable) active.outlive(run, detachTimeoutOf(context));
}

/** What was asked for, as far as it is known: by what is stored, or by what the client brings. */
function askedFor(header: RunHeader | undefined, { repeated }: Return) {
  const body = header?.body ?? repeated?.body;
  const name = header?.wire ?? repeated?.wire;
  if (body === undefined || name === undefined) return undefined;
  const wire = WIRES[name];
  return { wire, body, request: wire.request(JSON.parse(body)) };
}

/** What its continuation could spend; nothing is asked for where the request is not known. */
function useOf(header: RunHeader | undefined, back: Return, { models }: ApiContext): RouteUse | undefined {
  const asked = askedFor(header, back);
  return asked && models.use(asked.request.model);
}

/** The run as this replica would continue it; `undefined` when its request is unknown, or no route serves it to the client. */
function revive(header: RunHeader | undefined, back: Return, context: ApiContext): Run | undefined {
  const { run, active, options, caller } = back;
  const asked = askedFor(header, back);
  if (!asked || caller.refusal(() => context.models.use(asked.request.model))) return undefined;
  const { wire, body, request } = asked;
  const targets = context.models.targets(request.model);
  const target = targets.find(({ name: upstream }) => upstream === header?.upstream) ?? targets[0];
  if (!target) return undefined;
  const headersFor = (upstream: UpstreamConfiguration) => revivedRequestHeaders(back.headers, upstream, wire);
  const thread = header?.thread ?? options.thread;
  const events = header?.events ?? options.events;
  return {
    id: run,
    owner: active.owner,
    wire,
    ...targetsOfRun(target, targets, headersFor, context.healths, request.model),
    ...compressionOfRun(context.models.compression(request.model), back.headers),
    body,
    digest: requestDigest(context.secret, { wire: wire.name, events, body }),
    request,
    events,
    resumable: options.resumable,
    ...(back.document && { unstreamed: true }),
    ...(options.deadline_ms !== undefined && { deadline_ms: options.deadline_ms }),
    ...(thread !== undefined && { thread }),
    memory: active.memory,
    signal: active.signal,
  };
}
