import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Owner, RunId } from '../../checkpoint/store.ts';
import type { Limits } from '../../config/configuration.ts';
import { type ApiError, apiError } from '../../lib/errors.ts';
import { excessIn, FIELDS_MAX, isObject, NESTING_MAX, VALUES_MAX } from '../../lib/json.ts';
import { type Fields, readJsonBody } from '../../lib/json-body.ts';
import { inTime } from '../../lib/time.ts';
import { lastEventOf, NO_EVENTS, startingAfter } from '../resume/reader.ts';
import { makeKnown, readRun, runOfKey } from '../resume/stored-runs.ts';
import { WIRES } from '../wires/registry.ts';
import type { ApiContext } from './api-context.ts';
import { ownOwnerOf } from './caller.ts';
import { streamReadIn } from './durable-stream.ts';
import { readDurableStream, showDurableStream } from './durable-stream-reads.ts';
import {
  CANCEL_KEYED_RUN,
  DELETE_RUN,
  LIST_RUNS,
  RESUME_RUN,
  SHOW_RUN,
  SHOW_STREAM,
  STREAM_RUN,
} from './openapi-operations.ts';
import { holdingBody, takeBody, takeJsonBodies } from './request-bodies.ts';
import { type RepeatedRequest, type Return, returnToRun } from './return.ts';
import { listQuery, PRIVATE, runDocument, runList } from './run-documents.ts';
import { cancelRun, END_MS_MAX, purgeRun } from './run-ends.ts';
import { runOptions } from './run-options.ts';
import { RUN_PATH, runOf } from './run-requests.ts';
import { runUrlRoutes } from './run-urls-api.ts';

/** The part of a run that a returning client has. */
type Possession = Pick<Return, 'last' | 'tail' | 'repeated'>;

/** `/holdfast/v1/runs`: lists, states, streams and cancels runs for their owner. */
export function runRoutes(api: FastifyInstance, context: ApiContext): void {
  takeJsonBodies(api, context.memory);
  runUrlRoutes(api, context);

  api.get(RUN_PATH, { exposeHeadRoute: false, config: { operation: SHOW_RUN } }, async (request, reply) => {
    const run = runOf(request);
    const { owner } = request;
    await endStored(run, owner, context);
    const stored = await readRun(run, owner, context);
    return reply.headers(PRIVATE).send(await runDocument(run, owner, stored, context));
  });

  api.get(
    `${RUN_PATH}/stream`,
    { exposeHeadRoute: false, config: { operation: STREAM_RUN, right: 'read' } },
    async (request, reply) => {
      const run = runOf(request);
      const query = request.query as Record<string, unknown>;
      const read = streamReadIn(query);
      if (read) {
        await context.work.track(readDurableStream(run, read, request, reply, context));
        return reply;
      }
      const { starting_after } = query;
      // A page that reconnects automatically repeats the same URL, so its `Last-Event-ID` is more recent.
      const last = lastEventOf(request.headers, run) ?? startingAfter(starting_after) ?? NO_EVENTS;
      await context.work.track(resume(run, { last, tail: [] }, request, reply, context));
      return reply;
    },
  );
  api.head(`${RUN_PATH}/stream`, { config: { operation: SHOW_STREAM, right: 'read' } }, (request, reply) =>
    showDurableStream(runOf(request), request, reply, context),
  );

  const { limits } = context.configuration;
  // As an escaped string the request may be twice as large, and the tail adds to that.
  api.post(
    `${RUN_PATH}/resume`,
    { bodyLimit: 3 * limits.body_bytes, config: { operation: RESUME_RUN } },
    (request, reply) =>
      holdingBody(request, async () => {
        const run = runOf(request);
        const { fields } = readJsonBody(takeBody(request));
        const { cursor, ...brought } = resumeBody(fields, limits);
        const { epoch } = lastEventOf(request.headers, run) ?? NO_EVENTS;
        const last = { seq: cursor, ...(epoch !== undefined && { epoch }) };
        await context.work.track(resume(run, { last, ...brought }, request, reply, context));
      }),
  );

  api.delete(RUN_PATH, { config: { operation: DELETE_RUN } }, async (request, reply) => {
    const run = runOf(request);
    const { owner } = request;
    const { purge } = request.query as Record<string, unknown>;
    if (purge !== undefined && purge !== 'true')
      throw apiError('invalid_field', { param: 'purge', expected: 'true' });
    await readRun(run, owner, context);
    const state = await cancel(run, owner, context);
    if (purge === undefined) return reply.headers(PRIVATE).send(state);
    await purgeRun(run, owner, context);
    return reply.headers(PRIVATE).send({ id: run, object: 'holdfast.run', purged: true });
  });

  api.get(
    '/holdfast/v1/runs',
    { exposeHeadRoute: false, config: { operation: LIST_RUNS } },
    async (request, reply) => {
      const owner = ownOwnerOf(request, THE_CREDENTIAL);
      const wanted = listQuery(request.query as Record<string, unknown>);
      const list = await runList(wanted, owner, context);
      return reply.headers(PRIVATE).send(list);
    },
  );

  // Before its answer begins, a client knows its run only by the key of its request.
  api.delete(
    '/holdfast/v1/runs',
    { config: { operation: CANCEL_KEYED_RUN } },
    async ({ headers, owner }, reply) => {
      const { key } = runOptions(headers);
      if (key === undefined) throw apiError('missing_field', { param: 'Idempotency-Key', expected: THE_KEY });
      const run = await runOfKey(key, owner, context);
      return reply.headers(PRIVATE).send(await cancel(run, owner, context));
    },
  );
}

const THE_KEY = 'that of the request whose run is to be cancelled';
const THE_CREDENTIAL = 'the credential with which the runs were made';

/** The client brings the whole run, so it can be continued without the store. */
const isAll = ({ last, tail, repeated }: Possession): boolean =>
  repeated !== undefined && tail.length === last.seq;

async function resume(
  run: RunId,
  possession: Possession,
  { headers, caller, owner, memory }: FastifyRequest,
  reply: FastifyReply,
  context: ApiContext,
): Promise<void> {
  const { models, configuration } = context;
  const { repeated } = possession;
  const ofRoute = repeated && models.toolCalls(repeated.model);
  const options = runOptions(headers, ofRoute ?? configuration.delivery.tool_calls);
  // A client that sends an epoch received event ids, and needs them to return again.
  const resumable = options.resumable || possession.last.epoch !== undefined;
  const active = context.registry.begin(owner, caller.client, memory);
  try {
    if (isAll(possession)) await makeKnown(run, active.owner, context);
    const back = {
      ...possession,
      run,
      options: { ...options, resumable },
      headers,
      caller,
      active,
      onOpen: () => {},
      onLeft: () => {},
    };
    await returnToRun(back, reply, context);
  } finally {
    active.end();
  }
}

/** Cancels a run and returns the document with its new state. */
async function cancel(run: RunId, owner: Owner, context: ApiContext): Promise<object> {
  return runDocument(run, owner, await cancelRun(run, owner, context), context);
}

/**
 * The store lags behind the answer. If the client already has the end of it, wait so that the run isn't reported as
 * running.
 */
async function endStored(run: RunId, owner: Owner, { registry, time }: ApiContext): Promise<void> {
  const active = registry.holder(run);
  if (active?.owner === owner && active.isAnswered) await inTime(active.ended, time, END_MS_MAX);
}

/** The part of a run that a client brings, which may be ahead of the checkpoint. */
interface ResumeBody {
  /** The number of events that the client has. */
  readonly cursor: number;
  /** Payloads of the client's last events, oldest first; the last one is event `cursor`. */
  readonly tail: readonly string[];
  /** The request of the run, which may not be stored. */
  readonly repeated?: RepeatedRequest;
}

type ResumeLimits = Pick<Limits, 'run_bytes' | 'body_bytes'>;

/**
 * Validates `{cursor, tail, request}`. The tail is limited like a run, and the request like any request. Throws
 * `missing_field` and `invalid_field`.
 */
export function resumeBody({ cursor, tail = [], request }: Fields, limits: ResumeLimits): ResumeBody {
  const { run_bytes, body_bytes } = limits;
  if (cursor === undefined) {
    throw apiError('missing_field', { param: 'cursor', expected: 'the number of events that you have' });
  }
  if (!Number.isSafeInteger(cursor) || (cursor as number) < 0) {
    throw invalid('cursor', 'the number of events that you have, 0 for none');
  }
  if (!Array.isArray(tail)) throw invalid('tail', 'a list of the payloads of the last events that you have');
  if (tail.length > (cursor as number)) throw invalid('tail', 'a list of `cursor` events at most');
  let bytes = 0;
  for (const [index, payload] of tail.entries()) {
    // A payload with a line break can't have come from a `data:` line, and would break the next one.
    if (typeof payload !== 'string' || /[\r\n]/.test(payload)) {
      throw invalid(`tail[${index}]`, 'the payload of an event: a string without line breaks');
    }
    if (excessIn(payload) !== undefined)
      throw invalid(
        `tail[${index}]`,
        `the payload of an event: JSON of at most ${NESTING_MAX} levels, ${VALUES_MAX} values and ${FIELDS_MAX} fields`,
      );
    bytes += Buffer.byteLength(payload);
  }
  if (bytes > run_bytes) throw invalid('tail', `at most ${run_bytes} bytes in all (limits.run_bytes)`);
  const repeated = request === undefined ? undefined : repeatedRequest(request, body_bytes);
  return { cursor: cursor as number, tail, ...(repeated && { repeated }) };
}

/** Throws the errors that the request itself would get, too. */
function repeatedRequest(request: unknown, body_bytes: number): RepeatedRequest {
  const { path, body }: Fields = isObject(request) ? request : {};
  const wire = Object.values(WIRES).find((each) => `/v1${each.path}` === path);
  if (!wire)
    throw invalid('request.path', 'the path of the request of the run, such as /v1/chat/completions');
  if (typeof body !== 'string')
    throw invalid('request.body', 'the body of the request of the run, as a string');
  const bytes = Buffer.from(body);
  if (bytes.length > body_bytes) {
    throw invalid('request.body', `at most ${body_bytes} bytes (limits.body_bytes)`);
  }
  const { text, fields } = readJsonBody(bytes);
  if (fields.stream !== true) throw invalid('request.body', 'the body of a request with `stream: true`');
  const { model } = wire.request(fields);
  return { wire: wire.name, model, body: text };
}

const invalid = (param: string, expected: string): ApiError => apiError('invalid_field', { param, expected });
