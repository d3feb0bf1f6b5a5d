import type { FastifyInstance } from 'fastify';
import { unitsOf } from '../../checkpoint/journal.ts';
import type { Owner, StoredRun } from '../../checkpoint/store.ts';
import { answerOf } from '../resume/stored-runs.ts';
import type { NumberedName } from '../tasks/numbered-names.ts';
import { storedStep } from '../tasks/step-runs.ts';
import { inputOf } from '../wires/common/conversation.ts';
import { wireOf } from '../wires/registry.ts';
import type { ApiContext } from './api-context.ts';
import { LIST_CALLS, SHOW_TRANSCRIPT } from './openapi-operations.ts';
import { PRIVATE, READ_AT_ONCE, runDocument } from './run-documents.ts';
import {
  eachNumbered,
  type FoundTask,
  type NumberQuery,
  numberedPage,
  numberQuery,
  stepQuery,
} from './task-documents.ts';
import { foundTask, TASK_PATH, taskOf } from './task-requests.ts';

/** Routes for a task's answers and tool results, for its owner. */
export function taskTranscriptRoutes(api: FastifyInstance, context: ApiContext): void {
  api.get(
    `${TASK_PATH}/transcript`,
    { exposeHeadRoute: false, config: { operation: SHOW_TRANSCRIPT } },
    async (request, reply) => {
      const task = taskOf(request);
      const wanted = stepQuery(request.query as Record<string, unknown>);
      const found = await foundTask(task, context);
      return reply.headers(PRIVATE).send(await transcript(found, wanted, context));
    },
  );

  api.get(
    `${TASK_PATH}/calls`,
    { exposeHeadRoute: false, config: { operation: LIST_CALLS } },
    async (request, reply) => {
      const task = taskOf(request);
      const wanted = numberQuery(request.query as Record<string, unknown>, Number.MAX_SAFE_INTEGER);
      const found = await foundTask(task, context);
      return reply.headers(PRIVATE).send(await callList(found, wanted, context));
    },
  );
}

/**
 * One page of the answers, in the order of their steps. Large answers end a page before `limit`; `next` is set then.
 * Throws `store_unavailable`.
 */
async function transcript(
  found: FoundTask,
  { limit, after }: NumberQuery,
  context: ApiContext,
): Promise<object> {
  const { run_bytes } = context.configuration.limits;
  const last = Math.min(after + limit, found.record.steps);
  const data: object[] = [];
  let next = after;
  for (let units = 0; next < last && units < run_bytes; ) {
    const first = next + 1;
    next = Math.min(next + READ_AT_ONCE, last);
    const steps = await answerOf(context.tasks.steps(found, first, next), context);
    const answers = await Promise.all(steps.map((step) => answerOfStep(found.owner, step, context)));
    for (const answer of answers) {
      data.push(answer.document);
      units += answer.units;
    }
  }
  return numberedPage(data, next, found.record.steps);
}

/** `units`: the approximate size of the document. */
async function answerOfStep(
  owner: Owner,
  { number, name }: NumberedName,
  context: ApiContext,
): Promise<{ readonly document: object; readonly units: number }> {
  const found = await answerOf(storedStep(context.store, owner, name), context);
  const object = 'holdfast.answer';
  if (!found) return { document: { object, number, run: null, input: null, answer: null }, units: 0 };
  const { run, stored } = found;
  const input = inputOfRun(stored) ?? null;
  const answer = await runDocument(run, owner, stored, context);
  const units = JSON.stringify(input).length + unitsOfRun(stored);
  return { document: { object, number, run, input, answer }, units };
}

/** Undefined if the request is not stored or is not a conversation. */
function inputOfRun(stored: StoredRun): readonly unknown[] | undefined {
  const { body } = stored.records[0]?.header ?? {};
  const { conversation, request } = wireOf(stored);
  return body !== undefined && conversation ? inputOf(conversation, request(JSON.parse(body))) : undefined;
}

const unitsOfRun = ({ records }: StoredRun): number =>
  records.reduce((sum, { events }) => sum + events.reduce((units, event) => units + unitsOf(event), 0), 0);

/** One page of the tool calls, in the order of their first claims. Calls that are no longer known are left out. */
async function callList(
  found: FoundTask,
  { limit, after }: NumberQuery,
  context: ApiContext,
): Promise<object> {
  const { calls = 0 } = found.record;
  const last = Math.min(after + limit, calls);
  const documents = await eachNumbered(
    [after + 1, last],
    (first, end) => answerOf(context.tasks.calls(found, first, end), context),
    async ({ name: key }) => {
      const known = await answerOf(context.ledger.known({ ...found, key }), context);
      if (!known) return undefined;
      const { claims: _, ...rest } = known;
      return { object: 'holdfast.call', key, ...rest };
    },
  );
  const data = documents.filter((document) => document !== undefined);
  return numberedPage(data, last, calls);
}
