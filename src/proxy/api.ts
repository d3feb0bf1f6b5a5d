import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { UpstreamConfiguration } from '../config/configuration.ts';
import { apiError } from '../errors.ts';
import type { ApiContext } from './api-context.ts';
import { compressionOfRun } from './compression/run-compression.ts';
import { streamedRequest } from './document-request.ts';
import { streamRequestHeaders } from './headers.ts';
import { type JsonBody, readJsonBody, takeJsonBodies } from './json-body.ts';
import type { Models } from './models.ts';
import { wantsNotices } from './notices/notice-board.ts';
import { NoticeForm } from './notices/notice-form.ts';
import { noticedRelay } from './notices/noticed-relay.ts';
import { newRunId, ownerOf } from './owner.ts';
import { lastEventOf, NO_EVENTS } from './resume/cursor.ts';
import { graceOf } from './resume/grace.ts';
import { returnToRun } from './resume/return.ts';
import { type Ask, requestDigest } from './resume/run-lookup.ts';
import type { Run, Target } from './run.ts';
import { type RunOptions, runOptions, threadOf } from './run-options.ts';
import { attend, beforehand, type WantedDocument } from './run-session.ts';
import { targetsOfRun } from './targets/targets-of-run.ts';
import { WIRES } from './wires/registry.ts';
import { MODEL_CHARACTERS_MAX } from './wires/request-checks.ts';
import type { Wire } from './wires/wire.ts';

/**
 * What every wire answers: streams are relayed as runs, and so are requests for one document that can be put together
 * from a stream; everything else is passed through with its body as it came.
 */
export function wireRoutes(api: FastifyInstance, context: ApiContext): void {
  takeJsonBodies(api);
  for (const wire of Object.values(WIRES)) {
    api.post(`/v1${wire.path}`, async (request, reply) => {
      const sent = readJsonBody(request.body as Buffer | undefined);
      const owner = () => ownerOf(context.secret, request.headers);
      const body = await context.answerIds.inPlace(wire, sent, owner);
      await context.work.track(answer(wire, body, request, reply, context));
    });
  }
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

function answer(
  wire: Wire,
  body: JsonBody,
  request: FastifyRequest,
  reply: FastifyReply,
  context: ApiContext,
): Promise<void> {
  if (body.fields.stream === true) return streamAnswer(wire, body, request, reply, context);
  const { url, headers } = request;
  const streamed = streamedRequest(wire, body, url, () => ownerOf(context.secret, headers), context);
  if (streamed) return documentAnswer(wire, body, streamed, request, reply, context);
  return passAnswer(wire, body, request, reply, context);
}

async function passAnswer(
  wire: Wire,
  { text, fields }: JsonBody,
  request: FastifyRequest,
  reply: FastifyReply,
  { configuration, capabilities, models, notices, passThrough, secret }: ApiContext,
  chosen?: Target,
): Promise<void> {
  const { headers } = request;
  const { model } = fields;
  const target = chosen ?? (typeof model === 'string' ? targetOf(model, models) : models.fallback);
  const body = target.model === undefined ? text : JSON.stringify({ ...fields, model: target.model });
  const wireNotices = wantsNotices(headers['holdfast-notices'], configuration) ? wire.notices : undefined;
  const answered = wireNotices?.answeredCalls(fields) ?? [];
  const asked = { owner: ownerOf(secret, headers), thread: threadOf(headers), answered };
  const pending = wireNotices && (await notices.take(asked));
  const dialect = capabilities.dialect(target, String(model))?.name;
  const form = pending && new NoticeForm(pending.notices, wireNotices, dialect);
  reply.hijack();
  await passThrough.forward(request.raw, reply.raw, target, body, form);
  if (form) await pending.settle(form.fate);
}

function targetOf(model: string, models: Models): Target {
  const target = models.target(model);
  if (!target) throw apiError('model_not_found', { model: model.slice(0, MODEL_CHARACTERS_MAX) });
  return target;
}

/** The answer to `streamed` as one document. A target that does not stream answers the request as it came. */
async function documentAnswer(
  wire: Wire,
  body: JsonBody,
  streamed: JsonBody,
  request: FastifyRequest,
  reply: FastifyReply,
  context: ApiContext,
): Promise<void> {
  const { secret, streamRefusals, log } = context;
  const remember = (target: Target) =>
    streamRefusals.remember(target, String(body.fields.model), ownerOf(secret, request.headers));
  let left: Target | undefined;
  const onUnstreamed = (target: Target, isAnswered: boolean) => {
    if (isAnswered) remember(target);
    else left = target;
  };
  await streamAnswer(wire, streamed, request, reply, context, { onUnstreamed });
  if (!left || reply.raw.closed) return;
  log.info({ upstream: left.name }, 'not streamed: passed through');
  await passAnswer(wire, body, request, reply, context, left);
  // Only now is it certain that the stream was what was refused.
  if (reply.raw.headersSent && reply.raw.statusCode < 300) remember(left);
}

/** A run that the request was sent for before goes on; otherwise a new one begins. */
async function streamAnswer(
  wire: Wire,
  body: JsonBody,
  { headers }: FastifyRequest,
  reply: FastifyReply,
  context: ApiContext,
  document?: WantedDocument,
): Promise<void> {
  const { configuration, registry, lookup, models, healths, secret } = context;
  const asked = wire.request(body.fields);
  const target = targetOf(asked.model, models);
  // Whatever else could be told is nothing to put into a document.
  const options: RunOptions = { ...runOptions(headers), ...(document && { events: 'none' }) };
  const hasNotices = wantsNotices(headers['holdfast-notices'], configuration);
  const active = registry.begin(ownerOf(secret, headers));
  try {
    const { owner, signal } = active;
    const { events, resumable, thread, key } = options;
    const fresh = newRunId();
    const repeated = { wire: wire.name, body: body.text };
    const digest = requestDigest(secret, { ...repeated, events });
    const ask: Ask = { owner, digest, fresh, signal, ...(key !== undefined && { key }) };
    const known = options.run ?? (await beforehand(lookup.find(ask), reply, active));
    if (known !== undefined) {
      const knowsLast = options.run !== undefined && !document;
      const last = (knowsLast ? lastEventOf(headers, known) : undefined) ?? NO_EVENTS;
      const onOpen = () => lookup.remember(ask, known);
      const wanted = document && { document };
      const back = { run: known, options, headers, last, tail: [], repeated, active, onOpen, ...wanted };
      return await returnToRun(back, reply, context);
    }
    const headersFor = (upstream: UpstreamConfiguration) => streamRequestHeaders(headers, upstream, wire);
    const sent = targetsOfRun(target, models.targets(asked.model), headersFor, healths);
    const run: Run = {
      id: fresh,
      owner,
      wire,
      ...sent,
      ...compressionOfRun(models.compression(asked.model), headers),
      body: body.text,
      digest,
      request: asked,
      events,
      resumable,
      ...(document && { unstreamed: true }),
      ...(thread !== undefined && { thread }),
      signal,
    };
    const relay = hasNotices ? noticedRelay(context.relay, context.notices) : context.relay;
    registry.hold(run.id, active);
    if (resumable) active.outlive(run.id, graceOf(context));
    await attend(
      {
        run: run.id,
        wire: wire.name,
        active,
        // Of several it is not known yet which it will be.
        ...(!run.targets && { upstream: target.name }),
        resumable,
        ...(document && { document }),
        onOpen: () => lookup.remember(ask, run.id),
        deliver: (client) => relay(run, client, context),
      },
      reply,
      context,
    );
  } finally {
    active.end();
  }
}
