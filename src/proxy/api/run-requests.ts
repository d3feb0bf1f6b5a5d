import type { FastifyRequest } from 'fastify';
import { isRunId, type RunId } from '../../checkpoint/store.ts';
import { apiError } from '../../lib/errors.ts';

/** Of a route about one run. */
export const RUN_PATH = '/holdfast/v1/runs/:id';

/** What cannot be the id of a run is answered like any run that does not exist. */
export function runOf({ params }: FastifyRequest): RunId {
  const { id } = params as { id: string };
  if (!isRunId(id)) throw apiError('run_not_found');
  return id;
}
