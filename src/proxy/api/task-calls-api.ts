import type { FastifyInstance, FastifyRequest } from 'fastify';
import { apiError } from '../../lib/errors.ts';
import { type Fields, readJsonBody } from '../../lib/json-body.ts';
import { answerOf } from '../resume/stored-runs.ts';
import type { CallResult, ClaimTerms, LedgerCall } from '../tasks/call-ledger.ts';
import type { ApiContext } from './api-context.ts';
import { CLAIM_CALL, KEEP_RESULT, RELEASE_CALL } from './openapi-operations.ts';
import { holdingBody, takeBody } from './request-bodies.ts';
import { NAME_CHARACTERS_MAX, nameOf } from './request-fields.ts';
import { PRIVATE } from './run-documents.ts';
import { HOLD_MS_DEFAULT, HOLD_MS_MAX, TASK_PATH } from './task-requests.ts';

const CALL = `${TASK_PATH}/calls/:key`;

/** `/holdfast/v1/tasks/{task}/calls`: records which tool calls of a task have run. */
export function taskCallRoutes(api: FastifyInstance, context: ApiContext): void {
  const { metrics, tasks, taskRules, taskObserver, ledger } = context;

  api.post(`${CALL}/claim`, { config: { operation: CLAIM_CALL } }, (request, reply) =>
    holdingBody(request, async () => {
      const call = callOf(request);
      const terms = claimTerms(fieldsOf(request));
      const known = Promise.all([tasks.begun(call), taskRules.states.of(call)]);
      const [record, { era }] = await answerOf(known, context);
      if (!record) throw apiError('task_not_found');
      await answerOf(tasks.noteCall({ ...call, era }, record, call.key), context);
      const answer = await answerOf(ledger.claim(call, terms), context);
      metrics.toolClaims.inc({ outcome: answer.outcome });
      if (answer.outcome === 'unknown') taskObserver?.callUnknown({ ...call, ...answer, era });
      return reply.headers(PRIVATE).send(answer);
    }),
  );

  api.put(`${CALL}/result`, { config: { operation: KEEP_RESULT } }, (request, reply) =>
    holdingBody(request, async () => {
      const call = callOf(request);
      const fields = fieldsOf(request);
      const { result } = fields;
      const kept: CallResult = result === undefined ? {} : { result };
      await answerOf(ledger.keepResult(call, claimIn(fields), kept), context);
      return reply.headers(PRIVATE).send({ outcome: 'done', ...kept });
    }),
  );

  api.post(`${CALL}/release`, { config: { operation: RELEASE_CALL } }, (request, reply) =>
    holdingBody(request, async () => {
      const call = callOf(request);
      await answerOf(ledger.release(call, claimIn(fieldsOf(request))), context);
      return reply.headers(PRIVATE).send({ outcome: 'released' });
    }),
  );
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
  if (!isDuration)
    throw apiError('invalid_field', {
      param: 'hold_ms',
      expected: `a whole number of milliseconds from 1 to ${HOLD_MS_MAX}`,
    });
  if (repeat !== 'never' && repeat !== 'with_key')
    throw apiError('invalid_field', { param: 'repeat', expected: 'never or with_key' });
  return { claim: claimIn(fields), hold_ms: hold_ms as number, repeats: repeat === 'with_key' };
}

function claimIn({ claim }: Fields): string {
  const expected = `a random name that you give this claim, of 1 to ${NAME_CHARACTERS_MAX} characters`;
  if (claim === undefined) throw apiError('missing_field', { param: 'claim', expected });
  return nameOf('claim', claim, expected);
}
