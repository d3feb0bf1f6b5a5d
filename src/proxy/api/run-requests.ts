import type { FastifyRequest } from 'fastify';
import { isRunId, type RunId } from '../../checkpoint/store.ts';
import { apiError } from '../../lib/errors.ts';

export const RUN_PATH = '/holdfast/v1/runs/:id';

/**
 * The run in the path. Throws `run_not_found` for anything that can't be the id of a run, as for a run that doesn't
 * exist.
 */
export function runOf({ params }: FastifyRequest): RunId {
  const { id } = params as { id: string };
  if (!isRunId(id)) throw apiError('run_not_found');
  return id;
}
