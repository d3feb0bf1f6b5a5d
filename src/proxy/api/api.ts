import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { StepOfTask } from '../../checkpoint/journal.ts';
import { newRunId } from '../../checkpoint/owner.ts';
import type { RunId, StoredRun } from '../../checkpoint/store.ts';
import type { UpstreamConfiguration } from '../../config/configuration.ts';
import { apiError } from '../../lib/errors.ts';
import { type JsonBody, readJsonBody } from '../../lib/json-body.ts';
import { lastEventOf, NO_EVENTS } from '../resume/reader.ts';
import { requestDigest } from '../resume/request-digest.ts';
import { type Ask, keyNote, type Left } from '../resume/run-lookup.ts';
import type { Run } from '../run/context/run.ts';
import { wantsNotices } from '../run/notices/notice-board.ts';
import { NoticeForm, noticedRelay } from '../run/notices/noticed-relay.ts';
import { cachedConversation, compressionOfRun, targetsOfRun } from '../run/targets/targets-of-run.ts';
import { countReturn } from '../tasks/step-returns.ts';
import type { TaskSession } from '../tasks/task-steps.ts';
import { streamRequestHeaders } from '../upstream/headers.ts';
import type { RouteTable } from '../upstream/route-table.ts';
import type { Target } from '../upstream/target.ts';
import { MODEL_CHARACTERS_MAX } from '../wires/common/request.ts';
import type { Wire } from '../wires/common/wire.ts';
import { WIRES } from '../wires/registry.ts';
import type { ApiContext } from './api-context.ts';
import { deploymentIn, forDeployment } from './azure-path.ts';
import { streamedRequest } from './document-request.ts';
import { faultsIn, faultyRelay, missFaults } from './injected-faults.ts';
import { holdingBody, takeBody, takeJsonBodies } from './request-bodies.ts';
import { attend, beforehand, detachTimeoutOf, type WantedDocument } from './respond.ts';
import { returnToRun } from './return.ts';
import { conversationOf, profileOf, type RunOptions, runOptions, threadOf } from './run-options.ts';

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

function targetOf(model: string, models: RouteTable): Target {
  const target = models.target(model);
  if (!target) throw apiError('model_not_found', { model: model.slice(0, MODEL_CHARACTERS_MAX) });
  return target;
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

const stepOf = ({ task, step: name, parent }: TaskSession, number: number): StepOfTask => ({
  task,
  number,
  ...(name !== undefined && { name }),
  ...(parent !== undefined && { parent }),
});

/** Continues the run of an earlier request if this one repeats it; otherwise begins a new run. */
async function streamAnswer(
  wire: Wire,
  body: JsonBody,
  request: FastifyRequest,
  reply: FastifyReply,
  context: ApiContext,
  document?: WantedDocument,
): Promise<void> {
  const { configuration, registry, lookup, steps, models, healths, secret } = context;
  const { headers, caller, memory } = request;
  const asked = wire.request(body.fields);
  const target = targetOf(asked.model, models);
  // A document has no room for other advisories.
  const thread = threadOf(headers, body.fields, configuration.resume.derive_thread);
  const options: RunOptions = {
    ...runOptions(headers, models.toolCalls(asked.model) ?? configuration.delivery.tool_calls),
    ...(document && { events: 'none' }),
    ...(thread && { thread: thread.name }),
  };
  const faults = faultsIn(headers);
  const hasNotices = wantsNotices(headers['holdfast-notices'], configuration);
  const active = registry.begin(request.owner, caller.client, memory);
  try {
    const { owner, signal } = active;
    const { events, resumable, task, key } = options;
    const fresh = newRunId();
    const repeated = { wire: wire.name, model: asked.model, body: body.text };
    const digest = requestDigest(secret, { ...repeated, events });
    const isJoinable = () => wire.facts(asked).spliceable;
    // A client that names its run returns to a step it has already begun.
    const isStep = task && options.run === undefined;
    const asker: Ask = {
      ...{ owner, digest, fresh, signal, isJoinable },
      ...(key !== undefined && { note: keyNote(key) }),
    };
    const step = isStep ? await beforehand(steps.stepOf(asker, task), reply, active) : undefined;
    const ask = step?.ask ?? asker;
    const ofTask = task && step && { owner, task: task.task, era: step.era };
    const onOpen = (run: RunId) => {
      lookup.remember(ask, run);
      if (ofTask) context.tasks.answered(ofTask, task);
    };
    const onFound = (stored: StoredRun) => {
      countReturn(stored, owner, context);
      if (ofTask) context.divergences.returned(ofTask, task, stored);
    };
    const known = options.run ?? (await beforehand(lookup.find(ask), reply, active));
    if (known !== undefined) {
      missFaults(faults, known, wire, context);
      const knowsLast = options.run !== undefined && !document;
      const last = (knowsLast ? lastEventOf(headers, known) : undefined) ?? NO_EVENTS;
      const onLeft = (run: RunId, left: Left) => lookup.leave(ask, run, left);
      const wanted = document && { document };
      const back = {
        run: known,
        options,
        headers,
        caller,
        last,
        tail: [],
        repeated,
        active,
        onOpen,
        onLeft,
        ...(step && { onFound }),
        ...wanted,
      };
      return await returnToRun(back, reply, context);
    }
    if (step) context.metrics.steps.inc({ outcome: 'new' });
    const numbering = ofTask && step?.note && context.tasks.numberOf(ofTask, step.note, ask.noted === 'own');
    const number = numbering && (await beforehand(numbering, reply, active));
    if (ofTask && number !== undefined) context.divergences.began(ofTask, task, number, body.text);
    const headersFor = (upstream: UpstreamConfiguration) => streamRequestHeaders(headers, upstream, wire);
    const all = models.targets(asked.model);
    const cached = cachedConversation({ owner, thread: thread?.name }, asked.model, context);
    const sent = targetsOfRun(target, all, headersFor, healths, asked.model, cached);
    const run: Run = {
      id: fresh,
      owner,
      wire,
      ...sent,
      ...compressionOfRun(models.compression(asked.model), headers),
      hedge: models.hedge(asked.model),
      body: body.text,
      digest,
      request: asked,
      events,
      resumable,
      ...(document && { unstreamed: true }),
      ...profileOf(headers, configuration),
      ...(options.deadline_ms !== undefined && { deadline_ms: options.deadline_ms }),
      ...(thread && { thread: thread.name }),
      ...conversationOf(headers, asked),
      ...(task && number !== undefined && { step: stepOf(task, number) }),
      memory,
      signal,
    };
    const struck = faults.length > 0 ? faultyRelay(context.relay, faults) : context.relay;
    const relay = hasNotices ? noticedRelay(struck, context.notices, thread?.isDerived) : struck;
    registry.hold(run.id, active);
    if (resumable) active.outlive(run.id, detachTimeoutOf(context));
    await attend(
      {
        run: run.id,
        wire: wire.name,
        active,
        // With several targets, the upstream is still unknown.
        ...(!run.targets && { upstream: target.name }),
        resumable,
        ...(document && { document }),
        onOpen: () => onOpen(run.id),
        onLeft: () => lookup.leave(ask, run.id, resumable ? 'detached' : 'ending'),
        deliver: (client) => relay(run, client, context),
      },
      reply,
      context,
    );
  } finally {
    active.end();
  }
}
