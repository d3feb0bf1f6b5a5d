import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { apiError } from '../../lib/errors.ts';
import { type JsonBody, readJsonBody } from '../../lib/json-body.ts';
import { wantsNotices } from '../run/notices/notice-board.ts';
import { NoticeForm } from '../run/notices/noticed-relay.ts';
import type { Target } from '../upstream/target.ts';
import type { Wire } from '../wires/common/wire.ts';
import { WIRES } from '../wires/registry.ts';
import type { ApiContext } from './api-context.ts';
import { deploymentIn, forDeployment } from './azure-path.ts';
import { streamedRequest } from './document-request.ts';
import { faultsIn } from './injected-faults.ts';
import { holdingBody, takeBody, takeJsonBodies } from './request-bodies.ts';
import { threadOf } from './run-options.ts';
import { streamAnswer, targetOf } from './stream-answer.ts';

/** Parsing and comparing larger bodies blocks the event loop long enough that other requests need a turn in between. */
const LARGE_BYTES = 262_144;

let lastTurn: Promise<void> = Promise.resolve();

/** Gives each large body and step its own turn of the event loop. */
function ownTurn(): Promise<void> {
  lastTurn = lastTurn.then(() => nextTurn());
  return lastTurn;
}

/**
 * Routes for every wire. Streams are relayed as runs, and so are requests for a single document that can be assembled
 * from a stream; everything else is passed through unchanged.
 */
export function wireRoutes(api: FastifyInstance, context: ApiContext): void {
  takeJsonBodies(api, context.memory);
  for (const wire of Object.values(WIRES)) {
    api.post(`/v1${wire.path}`, (request, reply) =>
      holdingBody(request, async () => {
        const bytes = takeBody(request);
        const isLarge = bytes !== undefined && bytes.length > LARGE_BYTES;
        if (isLarge) await ownTurn();
        const sent = forDeployment(readJsonBody(bytes), deploymentIn(request.originalUrl));
        const { model } = sent.fields;
        request.caller.admit(() => context.models.use(typeof model === 'string' ? model : undefined));
        if (isLarge) await ownTurn();
        const body = await context.answerIds.inPlace(wire, sent, () => request.owner);
        return context.work.track(answer(wire, body, request, reply, context));
      }),
    );
  }
}

/** Everything else under `/v1`. Bodies are left unread for {@link PassThrough} to stream. */
export function passThroughRoutes(api: FastifyInstance, context: ApiContext): void {
  api.removeAllContentTypeParsers();
  api.addContentTypeParser('*', (_request, _payload, done) => done(null));
  api.all('/v1/*', async (request, reply) => {
    const { models, passThrough } = context;
    const deployment = deploymentIn(request.originalUrl);
    request.caller.admit(() => models.use(deployment));
    const target = deployment === undefined ? models.fallback : targetOf(deployment, models);
    reply.hijack();
    await context.work.track(passThrough.forward(request.raw, reply.raw, target));
  });
}

function answer(
  wire: Wire,
  body: JsonBody,
  request: FastifyRequest,
  reply: FastifyReply,
  context: ApiContext,
): Promise<void> {
  if (body.fields.stream === true) return streamAnswer(wire, body, request, reply, context);
  const streamed = streamedRequest(wire, body, request.url, () => request.owner, context);
  if (streamed) return documentAnswer(wire, body, streamed, request, reply, context);
  if (faultsIn(request.headers).length > 0) throw apiError('fault_not_injected');
  return passAnswer(wire, body, request, reply, context);
}

async function passAnswer(
  wire: Wire,
  { text, fields }: JsonBody,
  request: FastifyRequest,
  reply: FastifyReply,
  { configuration, capabilities, models, notices, passThrough }: ApiContext,
  chosen?: Target,
): Promise<void> {
  const { headers } = request;
  const { model } = fields;
  const target = chosen ?? (typeof model === 'string' ? targetOf(model, models) : models.fallback);
  const body = target.model === undefined ? text : JSON.stringify({ ...fields, model: target.model });
  const wireNotices = wantsNotices(headers['holdfast-notices'], configuration) ? wire.notices : undefined;
  const answered = wireNotices?.answeredCalls(fields) ?? [];
  const thread = threadOf(headers, fields, configuration.resume.derive_thread);
  const asked = {
    owner: request.owner,
    thread: thread?.name,
    of_model: thread?.isDerived ? String(model) : undefined,
    answered,
  };
  const pending = wireNotices && (await notices.claim(asked));
  const dialect = capabilities.dialect(target, String(model));
  const form = pending && new NoticeForm(pending.notices, wireNotices, dialect);
  reply.hijack();
  await passThrough.forward(request.raw, reply.raw, target, body, form);
  if (form) await pending.settle(form.fate);
}

/** Answers `streamed` as one document. If the target does not stream, the original request is passed through. */
async function documentAnswer(
  wire: Wire,
  body: JsonBody,
  streamed: JsonBody,
  request: FastifyRequest,
  reply: FastifyReply,
  context: ApiContext,
): Promise<void> {
  const { streamRefusals, log } = context;
  const remember = (target: Target) =>
    streamRefusals.remember(target, String(body.fields.model), request.owner);
  let left: Target | undefined;
  const onUnstreamed = (target: Target, isAnswered: boolean) => {
    if (isAnswered) remember(target);
    else left = target;
  };
  await streamAnswer(wire, streamed, request, reply, context, { onUnstreamed });
  if (!left || reply.raw.closed) return;
  log.info({ upstream: left.name }, 'not streamed: passed through');
  await passAnswer(wire, body, request, reply, context, left);
  // Only a successful answer proves that it refused the stream itself.
  if (reply.raw.headersSent && reply.raw.statusCode < 300) remember(left);
}
