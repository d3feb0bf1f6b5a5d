import type { FastifyRequest } from 'fastify';
import { apiError } from '../../lib/errors.ts';
import type { OwnedTask } from '../tasks/task-states.ts';
import type { ApiContext } from './api-context.ts';
import { ownOwnerOf } from './caller.ts';
import { nameOf } from './request-fields.ts';
import { type FoundTask, findTask } from './task-documents.ts';

export const TASK_PATH = '/holdfast/v1/tasks/:task';

/** How long a claim on a tool call lasts, by default and at most. */
export const HOLD_MS_DEFAULT = 60_000;
export const HOLD_MS_MAX = 86_400_000;

export const THE_CREDENTIAL = 'the credential with which the requests of the task were made';

/** The task named in a request's path. Throws `missing_field` and `invalid_field`. */
export function taskOf(request: FastifyRequest): OwnedTask {
  const owner = ownOwnerOf(request, THE_CREDENTIAL);
  const { task } = request.params as { task: string };
  return { owner, task: nameOf('task', task) };
}

/** Throws `task_not_found` and `store_unavailable`. */
export async function foundTask(task: OwnedTask, context: ApiContext): Promise<FoundTask> {
  const found = await findTask(task, context);
  if (!found) throw apiError('task_not_found');
  return found;
}
