import type { FastifyReply } from 'fastify';
import type { RunId } from '../checkpoint/store.ts';
import { apiError } from '../errors.ts';
import type { ActiveRun } from './active-run.ts';
import { ClientResponse, responseTurn } from './client-response.ts';
import { type Client, HAND_OVER, type Outcome, type RunContext } from './run.ts';

/** One client and the run it is delivered: a new one, or one that it comes back to. */
export interface RunSession {
  readonly run: RunId;
  readonly active: ActiveRun;
  /** Where a new run is sent. */
  readonly upstream?: string;
  /** The client asked for a run that it can come back to. */
  readonly resumable: boolean;
  /** Called when the stream begins. */
  onOpen(): void;
  /** Brings the run to its end, and the response with it. */
  deliver(client: Client): Promise<Outcome>;
}

interface Attendance extends RunSession {
  readonly client: ClientResponse;
}

const TAKEN_OVER = 'another replica has taken it over';

/** Waits for what has to be known before the run can be delivered. It is not wanted if the client leaves meanwhile. */
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

/** Never rejects: whatever goes wrong in the delivery ends as an error its client can tell from an answer. */
export async function attend(session: RunSession, reply: FastifyReply, context: RunContext): Promise<void> {
  const { run, active, resumable, upstream } = session;
  const { configuration, metrics, time, log } = context;
  reply.hijack();
  if (!(await responseTurn(reply.raw))) return;
  const client = new ClientResponse(reply.raw, configuration.limits, () => {
    session.onOpen();
    return resumable ? { location: `/holdfast/v1/runs/${run}/stream` } : {};
  });
  const began_ms = time.now();
  const leave = () => active.leave();
  if (client.signal.aborted) leave();
  else client.signal.addEventListener('abort', leave, { once: true });
  metrics.activeRuns.inc();
  const outcome = await outcomeOf({ ...session, client }, context);
  if (client.signal.aborted) metrics.clientDisconnects.inc();
  await client.closed;
  metrics.activeRuns.dec();
  metrics.runs.inc({ wire: 'chat_completions', outcome });
  const duration_ms = Math.round(time.now() - began_ms);
  log.info({ run, outcome, upstream, duration_ms }, 'run ended');
}

async function outcomeOf(session: Attendance, { log }: RunContext): Promise<Outcome> {
  const { run, active, client } = session;
  try {
    const outcome = await session.deliver(client);
    if (!client.over) {
      const wasTaken = active.signal.aborted || outcome === 'superseded';
      if (!wasTaken) throw new Error(`the run is ${outcome} but its response was left open`);
      breakOff(session);
    }
    return outcome;
  } catch (error) {
    log.error({ err: error, run }, 'relay failed');
    if (client.opened && !client.ended) client.destroy();
    else if (!client.ended) client.fail(apiError('internal_error'));
    return 'failed';
  }
}

/** The run was taken from its client: handed over or taken over, it goes on elsewhere; cancelled, it does not. */
function breakOff({ active, client }: Attendance): void {
  const { aborted, reason } = active.signal;
  if (aborted && reason !== HAND_OVER) tellCancelled(client);
  else if (client.opened) client.destroy();
  else if (aborted) client.fail(apiError('shutting_down'));
  else client.fail(apiError('stream_interrupted', { reason: TAKEN_OVER }));
}

function tellCancelled(client: ClientResponse): void {
  const cancelled = apiError('run_cancelled');
  if (client.opened) client.end(`data: ${cancelled.body}\n\n`);
  else client.fail(cancelled);
}
