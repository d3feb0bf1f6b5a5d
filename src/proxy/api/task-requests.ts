import { apiError } from '../../lib/errors.ts';
import { NAME_CHARACTERS_MAX } from './run-options.ts';

export const TASK_PATH = '/holdfast/v1/tasks/:task';

/** How long a tool may take, unless its claim says otherwise, and at most. */
export const HOLD_MS_DEFAULT = 60_000;
export const HOLD_MS_MAX = 86_400_000;

/** A name that the client makes up. Throws `invalid_field`. */
export function nameOf(
  param: string,
  value: unknown,
  expected = `of 1 to ${NAME_CHARACTERS_MAX} characters`,
): string {
  if (typeof value === 'string' && value !== '' && value.length <= NAME_CHARACTERS_MAX) return value;
  throw apiError('invalid_field', { param, expected });
}
