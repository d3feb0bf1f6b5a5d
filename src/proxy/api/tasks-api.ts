import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type ApiError, apiError } from '../../lib/errors.ts';
import { type Fields, readJsonBody } from '../../lib/json-body.ts';
import { CallLedger, type CallResult, type ClaimTerms, type LedgerCall } from '../resume/call-ledger.ts';
import { answerOf } from '../resume/stored-runs.ts';
import type { TaskRecord } from '../resume/task-records.ts';
import type { ApiContext } from './api-context.ts';
import { ownOwnerOf } from './caller.ts';
import { holdingBody, takeBody, takeJsonBodies } from './request-bodies.ts';
import { NAME_CHARACTERS_MAX } from './run-options.ts';
import { type OwnedTask, stepList, stepQuery, taskDocument } from './task-documents.ts';

const TASK = '/holdfast/v1/tasks/:task';
const CALL = `${TASK}/calls/:key`;
const PRIVATE = { 'cache-control': 'private, no-cache, no-store' };
const HOLD_MS_DEFAULT = 60_000;
const HOLD_MS_MAX = 86_400_000;

/** `/holdfast/v1/tasks`: the steps of a task, and which of its tool calls were run, for the owner of the task. */
export function taskRoutes(api: FastifyInstance, context: ApiContext): void {
  takeJsonBodies(api, context.memory);
  const { store, time, configuration, metrics, tasks } = context;
  const ledger = new CallLedger(store.notes, time, configuration.checkpoint.ttl_s * 1000);

  api.get(TASK, { exposeHeadRoute: false }, async (request, reply) => {
    const task = taskOf(request);
    return reply.headers(PRIVATE).send(await taskDocument(task, await recordOf(task, context), context));
  });

  api.get(`${TASK}/steps`, { exposeHeadRoute: false }, async (request, reply) => {
    const task = taskOf(request);
    const wanted = stepQuery(request.query as Record<string, unknown>);
    const { steps } = await recordOf(task, context);
    return reply.headers(PRIVATE).send(await stepList(task, steps, wanted, context));
  });

  api.post(`${CALL}/claim`, (request, reply) =>
    holdingBody(request, async () => {
      const call = callOf(request);
      const terms = claimTerms(fieldsOf(request));
      if (!(await answerOf(tasks.has(call.owner, call.task), context))) throw apiError('task_not_found');
      const answer = await answerOf(ledger.claim(call, terms), context);
      metrics.toolClaims.inc({ outcome: answer.outcome });
      return reply.headers(PRIVATE).send(answer);
    }),
  );

  api.put(`${CALL}/result`, (request, reply) =>
    holdingBody(request, async () => {
      const call = callOf(request);
      const fields = fieldsOf(request);
      const { result } = fields;
      const kept: CallResult = result === undefined ? {} : { result };
      await answerOf(ledger.keepResult(call, claimIn(fields), kept), context);
      return reply.headers(PRIVATE).send({ outcome: 'done', ...kept });
    }),
  );

  api.post(`${CALL}/release`, (request, reply) =>
    holdingBody(request, async () => {
      const call = callOf(request);
      await answerOf(ledger.release(call, claimIn(fieldsOf(request))), context);
      return reply.headers(PRIVATE).send({ outcome: 'released' });
    }),
  );
}

function taskOf(request: FastifyRequest): OwnedTask {
  const owner = ownOwnerOf(request, 'the credential with which the requests of the task were made');
  const { task } = request.params as { task: string };
  return { owner, task: nameOf('task', task) };
}

async function recordOf({ owner, task }: OwnedTask, context: ApiContext): Promise<TaskRecord> {
  const record = await answerOf(context.tasks.find(owner, task), context);
  if (!record) throw apiError('task_not_found');
  return record;
}

function callOf({ params, owner }: FastifyRequest): LedgerCall {
  const { task, key } = params as { task: string; key: string };
  return { owner, task: nameOf('task', task), key: nameOf('key', key) };
}

const fieldsOf = (request: FastifyRequest): Fields => readJsonBody(takeBody(request)).fields;

/** `{claim, hold_ms, repeat}` */
function claimTerms(fields: Fields): ClaimTerms {
  const { hold_ms = HOLD_MS_DEFAULT, repeat = 'never' } = fields;
  const isDuration =
    Number.isInteger(hold_ms) && (hold_ms as number) >= 1 && (hold_ms as number) <= HOLD_MS_MAX;
  if (!isDuration) throw invalid('hold_ms', `a whole number of milliseconds from 1 to ${HOLD_MS_MAX}`);
  if (repeat !== 'never' && repeat !== 'with_key') throw invalid('repeat', 'never or with_key');
  return { claim: claimIn(fields), hold_ms: hold_ms as number, repeats: repeat === 'with_key' };
}

function claimIn({ claim }: Fields): string {
  const expected = `a random name that you give this claim, of 1 to ${NAME_CHARACTERS_MAX} characters`;
  if (claim === undefined) throw apiError('missing_field', { param: 'claim', expected });
  return nameOf('claim', claim, expected);
}

function nameOf(
  param: string,
  value: unknown,
  expected = `of 1 to ${NAME_CHARACTERS_MAX} characters`,
): string {
  if (typeof value === 'string' && value !== '' && value.length <= NAME_CHARACTERS_MAX) return value;
  throw invalid(param, expected);
}

const invalid = (param: string, expected: string): ApiError => apiError('invalid_field', { param, expected });
