import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { UpstreamConfiguration } from '../config/configuration.ts';
import { apiError } from '../errors.ts';
import type { ApiContext } from './api-context.ts';
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
import { targetsOfRun } from './targets/targets-of-run.ts';
import { WIRES } from './wires/registry.ts';
import { MODEL_CHARACTERS_MAX } from './wires/request-checks.ts';
import type { Wire } from './wires/wire.ts';

/** What every wire answers: streams are relayed as runs, everything else is passed through with its body as it came. */
export function wireRoutes(api: FastifyInstance, context: ApiContext): void {
  takeJsonBodies(api);
  for (const wire of Object.values(WIRES)) {
    api.post(`/v1${wire.path}`, async (request, reply) => {
      const sent = readJsonBody(request.body as Buffer | undefined);
      const owner = () => ownerOf(context.secret, request.headers);
      const body = await context.answerIds.inPlace(wire, sent, owner);
      const isStream = body.fields.stream === true;
      const answer = isStream
        ? streamAnswer(wire, body, request, reply, context)
        : passAnswer(wire, body, request, reply, context);
      await context.work.track(answer);
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

async function passAnswer(
  wire: Wire,
  { text, fields }: JsonBody,
  request: FastifyRequest,
  reply: FastifyReply,
  { configuration, capabilities, models, notices, passThrough, secret }: ApiContext,
): Promise<void> {
  const { headers } = request;
  const { model, messages } = fields;
  const target = typeof model === 'string' ? targetOf(model, models) : models.fallback;
  const body = target.model === undefined ? text : JSON.stringify({ ...fields, model: target.model });
  const asked = { owner: ownerOf(secret, headers), thread: threadOf(headers), messages };
  const hasNotices = wantsNotices(headers['holdfast-notices'], configuration) && wire.takesNotices;
  const pending = hasNotices ? await notices.take(asked) : undefined;
  const dialect = capabilities.dialect(target, String(model))?.name;
  const form = pending && new NoticeForm(pending.notices, dialect);
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
async function streamAnswer(
  wire: Wire,
  body: JsonBody,
  { headers }: FastifyRequest,
  reply: FastifyReply,
  context: ApiContext,
): Promise<void> {
  const { configuration, registry, lookup, models, healths, secret } = context;
  const asked = wire.request(body.fields);
  const target = targetOf(asked.model, models);
  const options = runOptions(headers);
  const hasNotices = wantsNotices(headers['holdfast-notices'], configuration) && wire.takesNotices;
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
      const last = (options.run === undefined ? undefined : lastEventOf(headers, known)) ?? NO_EVENTS;
      const onOpen = () => lookup.remember(ask, known);
      const back = { run: known, options, headers, last, tail: [], repeated, active, onOpen };
      return await returnToRun(back, reply, context);
    }
    const headersFor = (upstream: UpstreamConfiguration) => streamRequestHeaders(headers, upstream, wire);
    const sent = targetsOfRun(target, models.targets(asked.model), headersFor, healths);
    const run: Run = {
      id: fresh,
      owner,
      wire,
      ...sent,
      body: body.text,
      digest,
      request: asked,
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
        wire: wire.name,
        active,
        // Of several it is not known yet which it will be.
        ...(!run.targets && { upstream: target.name }),
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
