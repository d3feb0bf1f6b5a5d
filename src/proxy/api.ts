import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { apiError } from '../errors.ts';
import type { ActiveWork } from './active-work.ts';
import { type ChatBody, checkChatRequest, MODEL_CHARACTERS_MAX, readChatBody } from './chat-body.ts';
import { ClientResponse, responseTurn } from './client-response.ts';
import { streamRequestHeaders } from './headers.ts';
import type { Models } from './models.ts';
import { newRunId, ownerOf } from './owner.ts';
import type { PassThrough } from './passthrough.ts';
import type { Client, EventsMode, Outcome, Run, RunContext, Target } from './run.ts';

/** Delivers one run to its end; see relay.ts. */
export type Relay = (run: Run, client: Client, context: RunContext) => Promise<Outcome>;

export interface ApiContext extends RunContext {
  readonly relay: Relay;
  readonly passThrough: PassThrough;
  readonly models: Models;
  /** Keys the owner of a run. */
  readonly secret: string;
  /** Everything under way, for draining. */
  readonly work: ActiveWork;
}

const EVENTS_MODES: readonly EventsMode[] = ['none', 'chunks', 'comments'];

/** `POST /v1/chat/completions`: streams are relayed as runs, everything else is passed through with its body as it came. */
export function chatCompletionsRoutes(api: FastifyInstance, context: ApiContext): void {
  api.removeAllContentTypeParsers();
  api.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) =>
    done(null, body),
  );
  api.post('/v1/chat/completions', async (request, reply) => {
    if (request.headers['content-encoding'] !== undefined) throw apiError('unsupported_media_type');
    const body = readChatBody(request.body as Buffer | undefined);
    if (body.fields.stream === true) await startRun(body, request, reply, context);
    else await passCompletion(body, request, reply, context);
  });
}

/** Everything else under `/v1`. Bodies are left unread for {@link PassThrough} to stream. */
export function passThroughRoutes(api: FastifyInstance, context: ApiContext): void {
  api.removeAllContentTypeParsers();
  api.addContentTypeParser('*', (_request, _payload, done) => done(null));
  api.all('/v1/*', async (request, reply) => {
    reply.hijack();
    await context.work.track(context.passThrough.forward(request.raw, reply.raw, context.models.fallback));
  });
}

async function passCompletion(
  { text, fields }: ChatBody,
  request: FastifyRequest,
  reply: FastifyReply,
  { models, passThrough, work }: ApiContext,
): Promise<void> {
  const { model } = fields;
  const target = typeof model === 'string' ? targetOf(model, models) : models.fallback;
  const body = target.model === undefined ? text : JSON.stringify({ ...fields, model: target.model });
  reply.hijack();
  await work.track(passThrough.forward(request.raw, reply.raw, target, body));
}

function targetOf(model: string, models: Models): Target {
  const target = models.target(model);
  if (!target) throw apiError('model_not_found', { model: model.slice(0, MODEL_CHARACTERS_MAX) });
  return target;
}

function eventsMode(header: string | string[] | undefined): EventsMode {
  const mode = EVENTS_MODES.find((candidate) => candidate === (header ?? 'none'));
  if (!mode) throw apiError('invalid_field', { param: 'Holdfast-Events', expected: EVENTS_MODES.join(', ') });
  return mode;
}

async function startRun(
  { text, fields }: ChatBody,
  { headers }: FastifyRequest,
  reply: FastifyReply,
  context: ApiContext,
): Promise<void> {
  const request = checkChatRequest(fields);
  const target = targetOf(request.model, context.models);
  const events = eventsMode(headers['holdfast-events']);
  reply.hijack();
  if (!(await responseTurn(reply.raw))) return;
  const client = new ClientResponse(reply.raw, context.configuration.limits);
  const run: Run = {
    id: newRunId(),
    owner: ownerOf(context.secret, headers),
    target,
    body: text,
    request,
    headers: streamRequestHeaders(headers, target.upstream),
    events,
    signal: client.signal,
  };
  await context.work.track(deliver(run, client, context));
}

/** Never rejects: whatever goes wrong in the relay ends as an error its client can tell from an answer. */
async function deliver(run: Run, client: ClientResponse, context: ApiContext): Promise<void> {
  const { metrics, time, log } = context;
  const began_ms = time.now();
  metrics.activeRuns.inc();
  const outcome = await relayed(run, client, context);
  if (client.signal.aborted) metrics.clientDisconnects.inc();
  await client.closed;
  metrics.activeRuns.dec();
  metrics.runs.inc({ wire: 'chat_completions', outcome });
  const duration_ms = Math.round(time.now() - began_ms);
  log.info({ run: run.id, outcome, upstream: run.target.name, duration_ms }, 'run ended');
}

async function relayed(run: Run, client: ClientResponse, context: ApiContext): Promise<Outcome> {
  try {
    const outcome = await context.relay(run, client, context);
    if (!client.ended && !client.signal.aborted)
      throw new Error(`the run is ${outcome} but its response was left open`);
    return outcome;
  } catch (error) {
    context.log.error({ err: error, run: run.id }, 'relay failed');
    if (client.opened && !client.ended) client.destroy();
    else if (!client.ended) client.fail(apiError('internal_error'));
    return 'failed';
  }
}
