import type { FastifyInstance, FastifyRequest } from 'fastify';
import { apiError } from '../../lib/errors.ts';
import { type Fields, readJsonBody } from '../../lib/json-body.ts';
import { answerOf } from '../resume/stored-runs.ts';
import { isEnded, type OwnedTask, type TaskState, type TaskStates } from '../tasks/task-states.ts';
import type { ApiContext } from './api-context.ts';
import { ownOwnerOf } from './caller.ts';
import {
  type Change,
  changeTask,
  DELETE_TASK,
  LIST_STEPS,
  LIST_TASKS,
  PUT_TASK,
  SHOW_TASK,
} from './openapi-operations.ts';
import { holdingBody, takeBody, takeJsonBodies } from './request-bodies.ts';
import { PRIVATE } from './run-documents.ts';
import { endingIn, reasonIn, termsIn } from './task-bodies.ts';
import { taskCallRoutes } from './task-calls-api.ts';
import { stepList, stepQuery, taskDocument, taskList, taskQuery } from './task-documents.ts';
import { cancelSteps, purgeTask } from './task-ends.ts';
import { taskEventRoute } from './task-events-api.ts';
import { foundTask, TASK_PATH, THE_CREDENTIAL, taskOf } from './task-requests.ts';
import { taskTranscriptRoutes } from './task-transcript-api.ts';

/** `/holdfast/v1/tasks`: an owner's tasks, with their progress and state. */
export function taskRoutes(api: FastifyInstance, context: ApiContext): void {
  takeJsonBodies(api, context.memory);
  taskCallRoutes(api, context);
  taskEventRoute(api, context);
  taskTranscriptRoutes(api, context);

  api.get(
    '/holdfast/v1/tasks',
    { exposeHeadRoute: false, config: { operation: LIST_TASKS } },
    async (request, reply) => {
      const owner = ownOwnerOf(request, THE_CREDENTIAL);
      const wanted = taskQuery(request.query as Record<string, unknown>);
      return reply.headers(PRIVATE).send(await taskList(owner, wanted, context));
    },
  );

  api.get(TASK_PATH, { exposeHeadRoute: false, config: { operation: SHOW_TASK } }, async (request, reply) => {
    const found = await foundTask(taskOf(request), context);
    return reply.headers(PRIVATE).send(await taskDocument(found, context));
  });

  api.get(
    `${TASK_PATH}/steps`,
    { exposeHeadRoute: false, config: { operation: LIST_STEPS } },
    async (request, reply) => {
      const task = taskOf(request);
      const wanted = stepQuery(request.query as Record<string, unknown>);
      return reply.headers(PRIVATE).send(await stepList(await foundTask(task, context), wanted, context));
    },
  );

  api.put(TASK_PATH, { config: { operation: PUT_TASK } }, (request, reply) =>
    holdingBody(request, async () => {
      const task = taskOf(request);
      const wanted = termsIn(readJsonBody(takeBody(request)).fields, context.time.wall());
      const { tasks, taskRules } = context;
      const { states, terms } = taskRules;
      const state = await answerOf(states.begun(task), context);
      if (isEnded(state)) throw apiError('task_ended', { status: state.status });
      await answerOf(tasks.declare({ ...task, era: state.era }), context);
      await answerOf(terms.put(task, wanted), context);
      return reply.headers(PRIVATE).send(await taskDocument(await foundTask(task, context), context));
    }),
  );

  /** `read`: parses the body. `set`: changes the state, and throws `task_ended`. */
  const change = <Said>(
    verb: Change,
    read: (fields: Fields) => Said,
    set: (states: TaskStates, task: OwnedTask, said: Said) => Promise<TaskState>,
  ) =>
    api.post(`${TASK_PATH}/${verb}`, { config: { operation: changeTask(verb) } }, (request, reply) =>
      holdingBody(request, async () => {
        const task = taskOf(request);
        const said = read(fieldsOf(request));
        const found = await foundTask(task, context);
        const state = await answerOf(set(context.taskRules.states, task, said), context);
        context.metrics.tasks.inc({ status: state.status });
        if (state.kept_until_ms !== undefined)
          await answerOf(context.endedTasks.add({ ...task, era: state.era }, state.kept_until_ms), context);
        if (state.status !== found.state.status) context.taskObserver?.changed(task, state);
        if (state.status === 'cancelled') await cancelSteps(found, context);
        return reply.headers(PRIVATE).send(await taskDocument({ ...found, state }, context));
      }),
    );
  const ending = (fields: Fields) => endingIn(fields, context.configuration.checkpoint.ended_task_ttl_s);
  change('pause', reasonIn, (states, task, reason) => states.pause(task, reason));
  change('resume', reasonIn, (states, task, reason) => states.resume(task, reason));
  change('complete', ending, (states, task, said) => states.end(task, 'completed', said));
  change('cancel', ending, (states, task, said) => states.end(task, 'cancelled', said));

  api.delete(TASK_PATH, { config: { operation: DELETE_TASK } }, async (request, reply) => {
    const task = taskOf(request);
    await purgeTask(task, context);
    return reply.headers(PRIVATE).send({ id: task.task, object: 'holdfast.task', purged: true });
  });
}

/** The body is optional. */
function fieldsOf(request: FastifyRequest): Fields {
  const body = takeBody(request);
  return body === undefined || body.length === 0 ? {} : readJsonBody(body).fields;
}
