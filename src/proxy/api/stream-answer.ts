import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Fault } from '../../chaos/fault.ts';
import type { StepOfTask } from '../../checkpoint/journal.ts';
import type { NoteKey } from '../../checkpoint/notes.ts';
import { newRunId } from '../../checkpoint/owner.ts';
import type { RunId } from '../../checkpoint/store.ts';
import type { UpstreamConfiguration } from '../../config/configuration.ts';
import { apiError } from '../../lib/errors.ts';
import type { JsonBody } from '../../lib/json-body.ts';
import { lastEventOf, NO_EVENTS } from '../resume/reader.ts';
import { requestDigest } from '../resume/request-digest.ts';
import { type Ask, keyNote } from '../resume/run-lookup.ts';
import type { Run } from '../run/context/run.ts';
import { wantsNotices } from '../run/notices/notice-board.ts';
import { noticedRelay } from '../run/notices/noticed-relay.ts';
import type { ActiveRun } from '../run/run-registry.ts';
import { cachedConversation, compressionOfRun, targetsOfRun } from '../run/targets/targets-of-run.ts';
import { countReturn } from '../tasks/step-returns.ts';
import type { TaskEra } from '../tasks/task-records.ts';
import type { TaskSession } from '../tasks/task-steps.ts';
import { streamRequestHeaders } from '../upstream/headers.ts';
import type { RouteTable } from '../upstream/route-table.ts';
import type { Target } from '../upstream/target.ts';
import { MODEL_CHARACTERS_MAX } from '../wires/common/request.ts';
import type { Wire, WireRequest } from '../wires/common/wire.ts';
import type { ApiContext } from './api-context.ts';
import { faultsIn, faultyRelay, missFaults } from './injected-faults.ts';
import { attend, beforehand, detachTimeoutOf, type RunSession, type WantedDocument } from './respond.ts';
import { type RepeatedRequest, type Return, returnToRun } from './return.ts';
import {
  conversationOf,
  profileOf,
  type RunOptions,
  runOptions,
  type Thread,
  threadOf,
} from './run-options.ts';

/** A request for a stream. */
interface StreamRequest {
  readonly wire: Wire;
  readonly body: JsonBody;
  /** The same body, validated. */
  readonly asked: WireRequest;
  readonly target: Target;
  readonly options: RunOptions;
  readonly thread: Thread | undefined;
  readonly faults: readonly Fault[];
  /** Whether pending notices go with the request. */
  readonly hasNotices: boolean;
  /** Set if the client wants the answer as one document. */
  readonly document: WantedDocument | undefined;
  readonly http: FastifyRequest;
}

/** A request that is a step of a task. */
interface StepRequest {
  readonly task: TaskEra;
  readonly session: TaskSession;
  /** The note with the run of the step; `undefined` if the store does not answer. */
  readonly note: NoteKey | undefined;
}

/** What is known of a request before it is answered. */
interface Found {
  readonly ask: Ask;
  /** The earlier run that the request repeats, or that the client named. */
  readonly run: RunId | undefined;
  readonly step: StepRequest | undefined;
}

/** Continues the run of an earlier request if this one repeats it; otherwise begins a new run. */
export async function streamAnswer(
  wire: Wire,
  body: JsonBody,
  http: FastifyRequest,
  reply: FastifyReply,
  context: ApiContext,
  document?: WantedDocument,
): Promise<void> {
  const request = streamRequest(wire, body, http, context, document);
  const active = context.registry.begin(http.owner, http.caller.client, http.memory);
  try {
    const found = await find(request, active, reply, context);
    const { run: known } = found;
    if (known !== undefined) {
      missFaults(request.faults, known, wire, context);
      return await returnToRun(returnOf(known, found, request, active, context), reply, context);
    }
    const step = found.step && (await beginStep(found.step, found.ask, body, active, reply, context));
    const run = runOf(found.ask, step, request, active, context);
    context.registry.hold(run.id, active);
    if (run.resumable) active.outlive(run.id, detachTimeoutOf(context));
    await attend(sessionOf(run, found, request, active, context), reply, context);
  } finally {
    active.end();
  }
}

/** Throws `model_not_found` and `invalid_field`. */
function streamRequest(
  wire: Wire,
  body: JsonBody,
  http: FastifyRequest,
  { configuration, models }: ApiContext,
  document: WantedDocument | undefined,
): StreamRequest {
  const { headers } = http;
  const asked = wire.request(body.fields);
  const target = targetOf(asked.model, models);
  const thread = threadOf(headers, body.fields, configuration.resume.derive_thread);
  const options: RunOptions = {
    ...runOptions(headers, models.toolCalls(asked.model) ?? configuration.delivery.tool_calls),
    // A document has no room for other advisories.
    ...(document && { events: 'none' }),
    ...(thread && { thread: thread.name }),
  };
  const faults = faultsIn(headers);
  const hasNotices = wantsNotices(headers['holdfast-notices'], configuration);
  return { wire, body, asked, target, options, thread, faults, hasNotices, document, http };
}

export function targetOf(model: string, models: RouteTable): Target {
  const target = models.target(model);
  if (!target) throw apiError('model_not_found', { model: model.slice(0, MODEL_CHARACTERS_MAX) });
  return target;
}

const repeatedRequest = ({ wire, asked, body }: StreamRequest): RepeatedRequest => ({
  wire: wire.name,
  model: asked.model,
  body: body.text,
});

async function find(
  request: StreamRequest,
  active: ActiveRun,
  reply: FastifyReply,
  { secret, steps, lookup }: ApiContext,
): Promise<Found> {
  const { wire, asked, options } = request;
  const { owner, signal } = active;
  const { events, task, key } = options;
  const asker: Ask = {
    owner,
    digest: requestDigest(secret, { ...repeatedRequest(request), events }),
    fresh: newRunId(),
    signal,
    isJoinable: () => wire.facts(asked).spliceable,
    ...(key !== undefined && { note: keyNote(key) }),
  };
  // A client that names its run returns to a step it has already begun.
  if (options.run !== undefined) return { ask: asker, run: options.run, step: undefined };
  const step = task && (await beforehand(steps.stepOf(asker, task), reply, active));
  const ask = step?.ask ?? asker;
  return {
    ask,
    run: await beforehand(lookup.find(ask), reply, active),
    step: step && { task: { owner, task: task.task, era: step.era }, session: task, note: step.note },
  };
}

function returnOf(
  run: RunId,
  { ask, step }: Found,
  request: StreamRequest,
  active: ActiveRun,
  context: ApiContext,
): Return {
  const { options, document, http } = request;
  const { headers, caller } = http;
  const knowsLast = options.run !== undefined && !document;
  return {
    run,
    options,
    headers,
    caller,
    last: (knowsLast ? lastEventOf(headers, run) : undefined) ?? NO_EVENTS,
    tail: [],
    repeated: repeatedRequest(request),
    active,
    ...(document && { document }),
    ...(step && {
      onFound: (stored) => {
        countReturn(stored, active.owner, context);
        context.divergences.returned(step.task, step.session, stored);
      },
    }),
    onOpen: (opened) => onOpen(opened, { ask, step }, context),
    onLeft: (left, how) => context.lookup.leave(ask, left, how),
  };
}

function onOpen(run: RunId, { ask, step }: Pick<Found, 'ask' | 'step'>, { lookup, tasks }: ApiContext): void {
  lookup.remember(ask, run);
  if (step) tasks.answered(step.task, step.session);
}

/** The new step, or `undefined` if the store doesn't answer. */
async function beginStep(
  { task, session, note }: StepRequest,
  { noted }: Ask,
  { text }: JsonBody,
  active: ActiveRun,
  reply: FastifyReply,
  { metrics, tasks, divergences }: ApiContext,
): Promise<StepOfTask | undefined> {
  metrics.steps.inc({ outcome: 'new' });
  if (!note) return undefined;
  const number = await beforehand(tasks.numberOf(task, note, noted === 'own'), reply, active);
  if (number === undefined) return undefined;
  divergences.began(task, session, number, text);
  const { step: name, parent } = session;
  return {
    task: session.task,
    number,
    ...(name !== undefined && { name }),
    ...(parent !== undefined && { parent }),
  };
}

function runOf(
  { fresh, digest, owner }: Ask,
  step: StepOfTask | undefined,
  { wire, body, asked, target, options, thread, document, http }: StreamRequest,
  { signal }: ActiveRun,
  context: ApiContext,
): Run {
  const { configuration, models, healths } = context;
  const { headers, memory } = http;
  const { events, resumable, deadline_ms } = options;
  const headersFor = (upstream: UpstreamConfiguration) => streamRequestHeaders(headers, upstream, wire);
  const cached = cachedConversation({ owner, thread: thread?.name }, asked.model, context);
  return {
    id: fresh,
    owner,
    wire,
    ...targetsOfRun(target, models.targets(asked.model), headersFor, healths, asked.model, cached),
    ...compressionOfRun(models.compression(asked.model), headers),
    hedge: models.hedge(asked.model),
    body: body.text,
    digest,
    request: asked,
    events,
    resumable,
    ...(document && { unstreamed: true }),
    ...profileOf(headers, configuration),
    ...(deadline_ms !== undefined && { deadline_ms }),
    ...(thread && { thread: thread.name }),
    ...conversationOf(headers, asked),
    ...(step && { step }),
    memory,
    signal,
  };
}

function sessionOf(
  run: Run,
  found: Found,
  { wire, target, thread, faults, hasNotices, document }: StreamRequest,
  active: ActiveRun,
  context: ApiContext,
): RunSession {
  const { id, resumable } = run;
  const struck = faults.length > 0 ? faultyRelay(context.relay, faults) : context.relay;
  const relay = hasNotices ? noticedRelay(struck, context.notices, thread?.isDerived) : struck;
  return {
    run: id,
    wire: wire.name,
    active,
    // With several targets, the upstream is still unknown.
    ...(!run.targets && { upstream: target.name }),
    resumable,
    ...(document && { document }),
    onOpen: () => onOpen(id, found, context),
    onLeft: () => context.lookup.leave(found.ask, id, resumable ? 'detached' : 'ending'),
    deliver: (client) => relay(run, client, context),
  };
}
