import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { apiError } from '../errors.ts';
import type { ApiContext } from './api-context.ts';
import { checkChatRequest, MODEL_CHARACTERS_MAX } from './chat-body.ts';
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
import { runOptions, threadOf } from './run-options.ts';
import { attend, beforehand } from './run-session.ts';
import { chatWire } from './wires/chat-wire.ts';

/** `POST /v1/chat/completions`: streams are relayed as runs, everything else is passed through with its body as it came. */
export function chatCompletionsRoutes(api: FastifyInstance, context: ApiContext): void {
  takeJsonBodies(api);
  api.post('/v1/chat/completions', async (request, reply) => {
    const body = readJsonBody(request.body as Buffer | undefined);
    const answer = body.fields.stream === true ? streamCompletion : passCompletion;
    await context.work.track(answer(body, request, reply, context));
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
  { text, fields }: JsonBody,
  request: FastifyRequest,
  reply: FastifyReply,
  { configuration, models, notices, passThrough, secret }: ApiContext,
): Promise<void> {
  const { headers } = request;
  const { model, messages } = fields;
  const target = typeof model === 'string' ? targetOf(model, models) : models.fallback;
  const body = target.model === undefined ? text : JSON.stringify({ ...fields, model: target.model });
  const asked = { owner: ownerOf(secret, headers), thread: threadOf(headers), messages };
  const hasNotices = wantsNotices(headers['holdfast-notices'], configuration);
  const pending = hasNotices ? await notices.take(asked) : undefined;
  const form = pending && new NoticeForm(pending.notices, target.upstream.dialect);
  reply.hijack();
  await passThrough.forward(request.raw, reply.raw, target, body, form);
  if (form) await pending.settle(form.fate);
}

function targetOf(model: string, models: Models): Target {
  const target = models.target(model);
  if (!target) throw apiError('model_not_found', { model: model.slice(0, MODEL_CHARACTERS_MAX) });
  return target;
}

/** A run that the request was sent for before goes on; otherwise a new one begins. */
async function streamCompletion(
  body: JsonBody,
  { headers }: FastifyRequest,
  reply: FastifyReply,
  context: ApiContext,
): Promise<void> {
  const { configuration, registry, lookup, secret } = context;
  const asked = checkChatRequest(body.fields);
  const target = targetOf(asked.model, context.models);
  const options = runOptions(headers);
  const hasNotices = wantsNotices(headers['holdfast-notices'], configuration);
  const active = registry.begin(ownerOf(secret, headers));
  try {
    const { owner, signal } = active;
    const { events, resumable, thread, key } = options;
    const fresh = newRunId();
    const digest = requestDigest(secret, body.text, events);
    const ask: Ask = { owner, digest, fresh, signal, ...(key !== undefined && { key }) };
    const known = options.run ?? (await beforehand(lookup.find(ask), reply, active));
    if (known !== undefined) {
      const last = (options.run === undefined ? undefined : lastEventOf(headers, known)) ?? NO_EVENTS;
      const onOpen = () => lookup.remember(ask, known);
      const back = { run: known, options, headers, last, tail: [], body: body.text, active, onOpen };
      return await returnToRun(back, reply, context);
    }
    const run: Run = {
      id: fresh,
      owner,
      wire: chatWire,
      target,
      body: body.text,
      digest,
      request: asked,
      headers: streamRequestHeaders(headers, target.upstream),
      events,
      resumable,
      ...(thread !== undefined && { thread }),
      signal,
    };
    const relay = hasNotices ? noticedRelay(context.relay, context.notices) : context.relay;
    registry.hold(run.id, active);
    if (resumable) active.outlive(run.id, graceOf(context));
    await attend(
      {
        run: run.id,
        active,
        upstream: target.name,
        resumable,
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
