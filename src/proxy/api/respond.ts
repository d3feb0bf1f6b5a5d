import type { FastifyReply } from 'fastify';
import { STORE_WAIT_MAX_MS } from '../../checkpoint/best-effort-store.ts';
import type { WireName } from '../../checkpoint/journal.ts';
import type { NoteKey } from '../../checkpoint/notes.ts';
import type { Owner, RunId } from '../../checkpoint/store.ts';
import type { Limits } from '../../config/configuration.ts';
import { type ApiError, apiError, errorObject } from '../../lib/errors.ts';
import { inTime } from '../../lib/time.ts';
import type { Outcome } from '../../plans/outcome.ts';
import type { Client } from '../downstream/client.ts';
import { ClientResponse, responseTurn } from '../downstream/client-response.ts';
import { DocumentResponse } from '../downstream/document-response.ts';
import { eventFrames } from '../downstream/event-frame.ts';
import { readRun } from '../resume/stored-runs.ts';
import { HAND_OVER } from '../run/context/run.ts';
import type { RunContext } from '../run/context/run-context.ts';
import { withRunId } from '../run/failure.ts';
import type { ActiveRun, DetachTimeout } from '../run/run-registry.ts';
import type { Target } from '../upstream/target.ts';
import { errorBodyOn } from '../wires/common/wire.ts';
import { WIRES } from '../wires/registry.ts';

/** A client and the run that is delivered to it: a new run, or one that the client returns to. */
export interface RunSession {
  readonly run: RunId;
  readonly wire: WireName;
  readonly active: ActiveRun;
  /** The target of a new run. */
  readonly upstream?: string;
  /** The client asked for a resumable run. */
  readonly resumable: boolean;
  /** Set if the client asked for an answer without a stream. */
  readonly document?: WantedDocument;
  /** Called when the answer begins. */
  onOpen(): void;
  /** Called if the client disconnects before it has the whole answer. */
  onLeft(): void;
  /** Runs to the end of the run, and ends the response. */
  deliver(client: Client): Promise<Outcome>;
}

/** A client that wants the answer as one document. */
export interface WantedDocument {
  /**
   * The target does not stream. `isAnswered`: it answered anyway; otherwise it must be asked again without a stream.
   */
  onUnstreamed(target: Target, isAnswered: boolean): void;
}

interface Attendance extends RunSession {
  readonly client: ClientResponse | DocumentResponse;
}

/** Awaits a result needed before delivery. If the client disconnects meanwhile, `active` is left. */
export async function beforehand<Result>(
  question: Promise<Result>,
  reply: FastifyReply,
  active: ActiveRun,
): Promise<Result> {
  const leave = () => active.leave();
  reply.raw.once('close', leave);
  try {
    return await question;
  } finally {
    reply.raw.off('close', leave);
  }
}

/** Never rejects: if delivery fails, the client gets an error that it can tell from an answer. */
export async function attend(session: RunSession, reply: FastifyReply, context: RunContext): Promise<void> {
  const { run, wire, active, upstream } = session;
  const { client: name } = active;
  const { configuration, metrics, time, log } = context;
  reply.hijack();
  if (!(await responseTurn(reply.raw))) return;
  const client = clientOf(session, reply, configuration.limits);
  const began_ms = time.now();
  const leave = () => {
    session.onLeft();
    active.leave();
  };
  if (client.signal.aborted) leave();
  else client.signal.addEventListener('abort', leave, { once: true });
  metrics.activeRuns.inc();
  // An unavailable store delays the end of the run, but must not keep the owner from starting another.
  void client.closed.then(() => client.ended && active.answered());
  const outcome = await outcomeOf({ ...session, client }, context);
  if (client.signal.aborted) metrics.clientDisconnects.inc();
  await client.closed;
  metrics.activeRuns.dec();
  metrics.runs.inc({ wire, outcome });
  const duration_ms = Math.round(time.now() - began_ms);
  log.info({ run, client: name, outcome, upstream, duration_ms, ...client.logFields }, 'run ended');
}

function clientOf(session: RunSession, { raw }: FastifyReply, limits: Limits): Attendance['client'] {
  const { run, wire, resumable, document, active } = session;
  const onOpen = () => {
    session.onOpen();
    return resumable ? { location: `/holdfast/v1/runs/${run}/stream` } : {};
  };
  if (!document) return new ClientResponse(raw, limits, onOpen);
  return new DocumentResponse(new ClientResponse(raw, limits), {
    wire: WIRES[wire],
    limits,
    onOpen,
    onOverflow: () => active.leave(),
    onUnstreamed: document.onUnstreamed,
  });
}

async function outcomeOf(session: Attendance, context: RunContext): Promise<Outcome> {
  const { run, active, client } = session;
  try {
    const outcome = await session.deliver(client);
    if (!client.over) {
      const wasTaken = active.signal.aborted || outcome === 'superseded';
      if (!wasTaken) throw new Error(`the run is ${outcome} but its response was left open`);
      await breakOff(session, context);
    }
    return outcome;
  } catch (error) {
    context.log.error({ err: error, run }, 'relay failed');
    if (client.opened && !client.ended) client.destroy();
    else if (!client.ended) refuse(session, apiError('internal_error'));
    return 'failed';
  }
}

/**
 * The run was taken from this client. After a handover or takeover it continues elsewhere; after a cancellation it does
 * not.
 */
async function breakOff(session: Attendance, context: RunContext): Promise<void> {
  const { run, active, client } = session;
  const { aborted, reason } = active.signal;
  if (aborted && reason !== HAND_OVER) tellCancelled(session);
  else if (client.opened) client.destroy();
  else if (aborted) refuse(session, apiError('shutting_down'));
  else if (await wasCancelled(run, active.owner, context)) tellCancelled(session);
  else refuse(session, apiError('run_taken_over'));
}

/** Whether the replica that took the run over cancelled it: a repeated request would only begin it again. */
async function wasCancelled(run: RunId, owner: Owner, context: RunContext): Promise<boolean> {
  const stored = await readRun(run, owner, context).catch(() => undefined);
  return stored?.status === 'cancelled';
}

function tellCancelled(session: Attendance): void {
  const { client, wire: name } = session;
  const wire = WIRES[name];
  if (client.opened) client.end(eventFrames(wire.delivered.failure(errorObject('run_cancelled'), []), wire));
  else refuse(session, apiError('run_cancelled'));
}

/** Answers with one of our errors, in the wire's format. */
function refuse({ client, wire, run }: Pick<Attendance, 'client' | 'wire' | 'run'>, error: ApiError): void {
  const body = errorBodyOn(WIRES[wire], withRunId(error.body, run));
  client.reject(error.status, { ...error.headers, 'holdfast-run-id': run }, body);
}

/**
 * How long a run continues on this replica without its client. Readers on any replica leave a note; if the store
 * doesn't answer, assume there is one. If this replica is lost, the next one finds the note that no client is waiting.
 */
export const detachTimeoutOf = ({ configuration, store, time, log }: RunContext): DetachTimeout => ({
  time,
  detached_ms: configuration.resume.detached_ms,
  async isRead(run, owner) {
    const note = store.notes.get(owner, { kind: 'reader', name: run });
    const isNoted = note.then(
      (value) => value !== undefined,
      () => undefined,
    );
    return (await inTime(isNoted, time, STORE_WAIT_MAX_MS)) ?? true;
  },
  onDetached(run, owner) {
    const { checkpoint, resume } = configuration;
    // Written again after `detached_ms`, needed once the lease has expired, and looked up during `salvage_after_ms`.
    const ttl_ms = 2 * resume.detached_ms + checkpoint.lease_ms + resume.salvage_after_ms;
    store.notes.put(owner, detachedNote(run), '', ttl_ms).catch((error: unknown) => {
      log.warn({ run, err: error }, 'could not note that a run has no client');
    });
  },
});

/** Notes that the client has left the run, which continues. */
export const detachedNote = (run: RunId): NoteKey => ({ kind: 'detached', name: run });
