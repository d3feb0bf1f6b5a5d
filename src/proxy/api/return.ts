import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { RunHeader, WireName } from '../../checkpoint/journal.ts';
import type { Continuation } from '../../checkpoint/salvage.ts';
import type { Orphan, Owner, RunId, StoredRun } from '../../checkpoint/store.ts';
import type { UpstreamConfiguration } from '../../config/configuration.ts';
import { ApiError, apiError } from '../../lib/errors.ts';
import type { Outcome } from '../../plans/outcome.ts';
import { absentClient } from '../downstream/client.ts';
import { reachable, unreachable } from '../resume/reachable.ts';
import type { Cursor, Reader } from '../resume/reader.ts';
import { requestDigest } from '../resume/request-digest.ts';
import type { Left } from '../resume/run-lookup.ts';
import { readUpTo } from '../resume/stored-runs.ts';
import { successionOf, successorOf } from '../resume/succession.ts';
import { endsWithoutRequest, fruitlessTakeovers, type Takeover, takeOver } from '../resume/takeover.ts';
import type { Run } from '../run/context/run.ts';
import type { RunContext } from '../run/context/run-context.ts';
import { withLease } from '../run/context/with-lease.ts';
import { relay } from '../run/relay.ts';
import type { ActiveRun } from '../run/run-registry.ts';
import { cachedConversation, compressionOfRun, targetsOfRun } from '../run/targets/targets-of-run.ts';
import { loopGuard, revivedRequestHeaders } from '../upstream/headers.ts';
import type { RouteUse } from '../upstream/route-table.ts';
import { WIRES, wireOf } from '../wires/registry.ts';
import type { ApiContext } from './api-context.ts';
import { type Caller, callerOf } from './caller.ts';
import { attend, beforehand, detachedNote, detachTimeoutOf, type WantedDocument } from './respond.ts';
import { conversationOf, profileOf, type RunOptions } from './run-options.ts';

/** Estimated memory per stored event, in addition to its text. */
const EVENT_BYTES = 256;

/** A repeated request for a run. */
export interface RepeatedRequest {
  readonly wire: WireName;
  /** The model named in the request. */
  readonly model: string;
  readonly body: string;
}

/** A client's return to an earlier run. */
export interface Return {
  readonly run: RunId;
  readonly options: RunOptions;
  readonly headers: IncomingHttpHeaders;
  readonly caller: Caller;
  /** The last event that the client has. */
  readonly last: Cursor;
  /** Payloads of the client's last events; see {@link Reader}. */
  readonly tail: readonly string[];
  /** The request, if the client sends it again. */
  readonly repeated?: RepeatedRequest;
  readonly active: ActiveRun;
  /** Set if the client wants the whole answer as one document. */
  readonly document?: WantedDocument;
  /** Called before delivery with the stored run, or with its successor. */
  onFound?(stored: StoredRun): void;
  /** Called when the answer of this run or its successor begins. */
  onOpen(run: RunId): void;
  /** Called if the client disconnects before it has the whole answer. */
  onLeft(run: RunId, left: Left): void;
}

/**
 * Delivers the events of the run that the client doesn't have yet, up to its end.
 * Throws `run_not_found`, `run_mismatch`, `unknown_client`, `route_not_allowed`, `cursor_ahead`, `tail_incomplete`,
 * `tail_mismatch`, `not_resumable`, `memory_exhausted` or `store_unavailable` before the response has begun.
 */
export async function returnToRun(back: Return, reply: FastifyReply, context: ApiContext): Promise<void> {
  const { run, active, last, tail, options, repeated } = back;
  const asked = repeated && { wire: repeated.wire, events: options.events };
  const checkpoint = readUpTo(last.seq - tail.length, run, active, context);
  const stored = await beforehand(checkpoint, reply, active);
  active.memory.take(bytesHeldBy(stored));
  if (!isSameRequest(stored, back, context)) throw apiError('run_mismatch', { run });
  back.caller.admit(() => useOf(stored.records[0]?.header, back, context));
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
  const successor = await beforehand(successorFor(stored, reader, back, context), reply, active);
  if (successor !== undefined) return returnToRun(asOf(successor, back), reply, context);
  if (isLate(stored, reader) || !reachable(stored, reader)) throw unreachable(stored, reader);
  if (isUnknown(stored, reader)) throw apiError('not_resumable');
  back.onFound?.(stored);
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
 * The run that continues the client's answer in place of this one, if its request is known: the client sent it again,
 * or it was stored and either the client brings events of its own or the journal was damaged. `undefined` if there is
 * none.
 */
async function successorFor(
  stored: StoredRun,
  reader: Reader,
  { run, active, options, repeated, tail }: Return,
  context: ApiContext,
): Promise<RunId | undefined> {
  const header = stored.records[0]?.header;
  const isAskedFor = tail.length > 0 || stored.damage !== undefined;
  const body = repeated?.body ?? (isAskedFor ? header?.body : undefined);
  const left = successionOf(stored, reader);
  if (!left || !header || body === undefined) return undefined;
  const wire = WIRES[header.wire];
  if (!wire.facts(wire.request(JSON.parse(body))).spliceable) return undefined;
  const digest = requestDigest(context.secret, { wire: header.wire, events: header.events, body });
  const kept = options.resumable ? { body } : {};
  return successorOf({ run, owner: active.owner, ...left, digest, ...kept }, context);
}

/** The client's events belong to the successor too, but the epoch of its event ids does not. */
const asOf = (run: RunId, back: Return): Return => ({ ...back, run, last: { seq: back.last.seq } });

/** An estimate: each event is held as a payload and as deltas. */
function bytesHeldBy({ records }: StoredRun): number {
  let bytes = 0;
  for (const { events } of records)
    for (const { payload = '' } of events) bytes += EVENT_BYTES + 2 * payload.length;
  return bytes;
}

/** A live run whose checkpoint has not reached the start of the client's tail. */
const isLate = ({ status, holder, seq }: StoredRun, { cursor, tail }: Reader): boolean =>
  status === 'running' && holder.state === 'alive' && seq < cursor - tail.length;

/** No replica delivers it, and neither its request nor its wire is known. */
const isUnknown = (stored: StoredRun, reader: Reader): boolean =>
  stored.status === 'running' &&
  stored.holder.state !== 'alive' &&
  stored.records.length === 0 &&
  reader.asked === undefined &&
  !endsWithoutRequest(stored, reader);

/** The client has disconnected again. The run continues without it, ends, or stays as it was found. */
function left(
  { records }: StoredRun,
  { run, active, options, onLeft, onOpen }: Return,
  { registry }: ApiContext,
): void {
  if (options.resumable || records[0]?.header?.body !== undefined) onLeft(run, 'detached');
  else if (registry.holder(run) === active) onLeft(run, 'ending');
  else onOpen(run);
}

/** Compares the requests as far as they are known: an answer must not combine two requests. */
function isSameRequest(
  { records }: StoredRun,
  { repeated, document }: Return,
  { secret }: ApiContext,
): boolean {
  const header = records[0]?.header;
  // If calls were shown live, a document can't mark the ones that were cut.
  if (document && header && header.events !== 'none') return false;
  if (repeated === undefined || header?.digest === undefined) return true;
  return header.digest === requestDigest(secret, { ...repeated, events: header.events });
}

/** The context for a run that continues without a client. */
export type UnattendedContext = RunContext &
  Pick<ApiContext, 'secret' | 'work' | 'registry' | 'memory' | 'models' | 'healths'>;

/**
 * Continues an orphaned run whose client had disconnected and whose request is stored. It uses operator keys only,
 * because client keys are not stored. Like any detached run it may take `resume.detached_ms`, or longer while a client
 * reads it. Rejects if the store fails.
 */
export async function continueUnattended(
  { run, owner }: Orphan,
  context: UnattendedContext,
): Promise<Continuation> {
  const { store, configuration, registry, secret } = context;
  // The client of any other run may still be served by a replica that merely can't reach the store.
  if ((await store.notes.get(owner, detachedNote(run))) === undefined) return 'never';
  const stored = await store.read(run, owner, 0);
  const header = stored?.records[0]?.header;
  if (stored?.status !== 'running' || header?.body === undefined || stored.damage) return 'never';
  // A draining replica hands over healthy runs, but each handover makes another replica start again.
  if (fruitlessTakeovers(stored) >= configuration.resume.max_takeovers) return 'never';
  // The local copy has lost its lease and is about to notice.
  if (registry.holder(run)) return 'later';
  const caller = callerOf(owner, configuration, secret);
  const headers: IncomingHttpHeaders = {};
  loopGuard(secret)(headers);
  return beginUnattended({ run, owner, stored, caller, headers }, context);
}

/** An orphaned run, and the caller on whose behalf it continues. */
interface Unattended {
  readonly run: RunId;
  readonly owner: Owner;
  readonly stored: StoredRun;
  readonly caller: Caller;
  /** Headers of the request that continues it, including the credential. */
  readonly headers: IncomingHttpHeaders;
}

/** Continues an orphaned run whose request is stored; the answer goes only to the store. Rejects if the store fails. */
export async function beginUnattended(
  { run, owner, stored, caller, headers }: Unattended,
  context: UnattendedContext,
): Promise<Continuation> {
  const { registry, work } = context;
  const header = stored.records[0]?.header;
  if (header?.body === undefined) return 'never';
  const active = admitted(stored, owner, caller, context);
  if (!active) return 'later';
  const options = { events: header.events, resumable: true };
  const reader: Reader = {
    run,
    owner,
    cursor: 0,
    tail: [],
    signal: active.signal,
    resumable: true,
    revive: (known) => revive(known, { run, active, options, caller, headers }, context),
    onTakenOver: () => {
      registry.hold(run, active);
      active.outlive(run, detachTimeoutOf(context));
      active.leave();
    },
  };
  let takeover: Takeover | undefined;
  try {
    // Without a request there is nothing to continue, even if a client could be served.
    if (reader.revive(header)) takeover = await takeOver(reader, reader, context);
  } finally {
    if (takeover?.kind !== 'won') active.end();
  }
  if (takeover?.kind !== 'won') return takeover?.kind === 'lost' ? 'begun' : 'never';
  reader.onTakenOver();
  void work.track(deliverUnattended(takeover, active, context));
  return 'begun';
}

/** Undefined if there is no room for another run. */
function admitted(
  stored: StoredRun,
  owner: Owner,
  { client }: Caller,
  { registry, memory }: UnattendedContext,
): ActiveRun | undefined {
  const share = memory.share();
  let active: ActiveRun | undefined;
  try {
    share.take(bytesHeldBy(stored));
    active = registry.begin(owner, client, share);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
  } finally {
    // From here on, the run holds the memory if it was admitted.
    share.release();
  }
  return active;
}

/** Never rejects. If delivery fails unexpectedly, the lease of the run is released. */
async function deliverUnattended(
  { run, resumption }: Extract<Takeover, { kind: 'won' }>,
  active: ActiveRun,
  context: UnattendedContext,
): Promise<void> {
  const { metrics, time, log } = context;
  const { lease, stored } = resumption;
  const began_ms = time.now();
  log.info({ run: run.id, from: stored.seq }, 'run continues without a client');
  metrics.activeRuns.inc();
  const client = absentClient();
  const delivered = withLease(lease, () => relay(run, client, context, resumption), context);
  const outcome = await delivered.catch((error: unknown): Outcome => {
    log.error({ err: error, run: run.id }, 'relay failed');
    return 'failed';
  });
  active.end();
  metrics.activeRuns.dec();
  metrics.runs.inc({ wire: run.wire.name, outcome });
  const duration_ms = Math.round(time.now() - began_ms);
  const ended = { run: run.id, client: active.client, outcome, upstream: run.target.name, duration_ms };
  log.info({ ...ended, ...client.logFields }, 'run ended');
}

/** From here on the run continues on this replica, and without a client for a while if one asked for that. */
function hold({ records }: StoredRun, { run, active, options }: Return, context: ApiContext): void {
  context.registry.hold(run, active);
  const wasResumable = records[0]?.header?.body !== undefined;
  if (!options.resumable && !wasResumable) return;
  active.outlive(run, detachTimeoutOf(context));
  void attached(run, active.owner, context);
}

/** Removes the note that the run is detached, so that no other replica continues it. Never rejects. */
export async function attached(run: RunId, owner: Owner, { store, log }: RunContext): Promise<void> {
  await store.notes.consume(owner, detachedNote(run)).catch((error: unknown) => {
    log.warn({ run, err: error }, 'could not note that a run has a client again');
  });
}

/** The original request from the store, or the one that the client repeats. */
function askedFor(header: RunHeader | undefined, { repeated }: Pick<Return, 'repeated'>) {
  const body = header?.body ?? repeated?.body;
  const name = header?.wire ?? repeated?.wire;
  if (body === undefined || name === undefined) return undefined;
  const wire = WIRES[name];
  return { wire, body, request: wire.request(JSON.parse(body)) };
}

/** The route that a continuation would use; `undefined` if the request is unknown. */
function useOf(header: RunHeader | undefined, back: Return, { models }: ApiContext): RouteUse | undefined {
  const asked = askedFor(header, back);
  return asked && models.use(asked.request.model);
}

/**
 * The run as this replica would continue it; `undefined` if its request is unknown, or no route serves it to this
 * caller.
 */
function revive(
  header: RunHeader | undefined,
  back: Pick<Return, 'run' | 'active' | 'options' | 'caller' | 'headers' | 'repeated' | 'document'>,
  context: Pick<ApiContext, 'configuration' | 'models' | 'healths' | 'secret' | 'time'>,
): Run | undefined {
  const { run, active, options, caller } = back;
  const asked = askedFor(header, back);
  if (!asked || caller.refusal(() => context.models.use(asked.request.model))) return undefined;
  const { wire, body, request } = asked;
  const targets = context.models.targets(request.model).filter((each) => caller.canAsk(each));
  const target = targets.find(({ name: upstream }) => upstream === header?.upstream) ?? targets[0];
  if (!target) return undefined;
  const headersFor = (upstream: UpstreamConfiguration) => revivedRequestHeaders(back.headers, upstream, wire);
  const compression = context.models.compression(request.model);
  const thread = header?.thread ?? options.thread;
  const events = header?.events ?? options.events;
  const step = header?.step;
  const { owner } = active;
  const cached = cachedConversation({ owner, thread }, request.model, context);
  return {
    id: run,
    owner,
    wire,
    ...targetsOfRun(target, targets, headersFor, context.healths, request.model, cached),
    hedge: context.models.hedge(request.model),
    ...compressionOfRun(
      compression && caller.canAsk(compression.target) ? compression : undefined,
      back.headers,
    ),
    body,
    digest: requestDigest(context.secret, { wire: wire.name, events, body }),
    request,
    events,
    resumable: options.resumable,
    ...(back.document && { unstreamed: true }),
    ...profileOf(back.headers, context.configuration),
    ...(options.deadline_ms !== undefined && { deadline_ms: options.deadline_ms }),
    ...(thread !== undefined && { thread }),
    ...conversationOf(back.headers, request),
    ...(step && { step }),
    memory: active.memory,
    signal: active.signal,
  };
}
