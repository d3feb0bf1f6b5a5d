import { apiError } from '../../lib/errors.ts';
import { NAME_CHARACTERS_MAX } from './run-options.ts';

export const TASK_PATH = '/holdfast/v1/tasks/:task';

/** A name that the client makes up. Throws `invalid_field`. */
export function nameOf(
  param: string,
  value: unknown,
  expected = `of 1 to ${NAME_CHARACTERS_MAX} characters`,
): string {
  if (typeof value === 'string' && value !== '' && value.length <= NAME_CHARACTERS_MAX) return value;
  throw apiError('invalid_field', { param, expected });
}
