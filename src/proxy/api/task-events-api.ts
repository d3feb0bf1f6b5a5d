import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ClientResponse, responseTurn } from '../downstream/client-response.ts';
import { namedFrame } from '../downstream/event-frame.ts';
import { KeptAlive } from '../downstream/kept-alive.ts';
import { StorePoll } from '../resume/store-poll.ts';
import type { ApiContext } from './api-context.ts';
import { STREAM_TASK } from './openapi-operations.ts';
import type { FoundTask } from './task-documents.ts';
import { positionId, positionIn, type TaskPosition } from './task-position.ts';
import { foundTask, TASK_PATH, taskOf } from './task-requests.ts';
import { TaskWatch, type TellEvent } from './task-watch.ts';

/** A task may be watched for days, and its steps take seconds. */
const POLL_MS_MAX = 1000;

/** `/holdfast/v1/tasks/{task}/events`: streams a task's events from all replicas. */
export function taskEventRoute(api: FastifyInstance, context: ApiContext): void {
  api.get(
    `${TASK_PATH}/events`,
    { exposeHeadRoute: false, config: { operation: STREAM_TASK } },
    async (request, reply) => {
      const task = taskOf(request);
      const position = positionOf(request);
      const found = await foundTask(task, context);
      await context.work.track(streamEvents(found, position, request, reply, context));
    },
  );
}

/**
 * A page that reconnects automatically repeats the same URL, so its `Last-Event-ID` is more recent. Throws
 * `invalid_field`.
 */
function positionOf({ headers, query }: FastifyRequest): TaskPosition | undefined {
  const { 'last-event-id': last } = headers;
  if (last !== undefined && last !== '') return positionIn('Last-Event-ID', last);
  const { after } = query as Record<string, unknown>;
  return after === undefined ? undefined : positionIn('after', after);
}

/**
 * Counts as a run on this replica for the owner's limits and for memory. Without the end of the task, the connection is
 * closed without an end of the response. Throws `too_many_runs` and `memory_exhausted`.
 */
async function streamEvents(
  found: FoundTask,
  position: TaskPosition | undefined,
  { caller, memory }: FastifyRequest,
  reply: FastifyReply,
  context: ApiContext,
): Promise<void> {
  const { configuration, registry, refusing, time } = context;
  const { limits, delivery } = configuration;
  const active = registry.begin(found.owner, caller.client, memory);
  try {
    reply.hijack();
    if (!(await responseTurn(reply.raw))) return;
    const client = new ClientResponse(reply.raw, limits);
    const signal = AbortSignal.any([client.signal, active.signal, refusing]);
    const breakOff = () => client.destroy();
    // Registered before the first write, because a client that reads nothing would block it.
    signal.addEventListener('abort', breakOff, { once: true });
    client.open({});
    client.write('');
    const stream = new KeptAlive(client, time, delivery.keepalive_ms);
    let isOver = false;
    try {
      isOver = await followTask(found, position, stream, signal, context);
    } finally {
      stream.close();
      signal.removeEventListener('abort', breakOff);
      if (isOver) client.end('');
      else breakOff();
    }
  } finally {
    active.end();
  }
}

/**
 * Resolves with true once the task has ended. Otherwise the client has disconnected or must reconnect, or the store is
 * unavailable.
 */
async function followTask(
  found: FoundTask,
  position: TaskPosition | undefined,
  stream: KeptAlive,
  signal: AbortSignal,
  context: ApiContext,
): Promise<boolean> {
  const poll = new StorePoll(context, signal, { task: found.task }, POLL_MS_MAX);
  const tell: TellEvent = (name, document, at) => {
    poll.hurry();
    return stream.write(namedFrame(name, JSON.stringify(document), positionId(at)));
  };
  const watch = new TaskWatch(found, position, tell, signal, context);
  while (!signal.aborted) {
    const outcome = await poll.patiently(() => watch.look());
    if (outcome !== 'goes_on') return outcome === 'over';
    await poll.rest();
  }
  return false;
}
