import type { IncomingHttpHeaders } from 'node:http';
import { type ApiError, apiError } from '../../lib/errors.ts';

/** For threads, tasks, sessions and steps. */
export const NAME_CHARACTERS_MAX = 256;

/** A name chosen by the client, from a header. Throws `invalid_field`. */
export function named(header: string, headers: IncomingHttpHeaders): string | undefined {
  const name = single(headers[header.toLowerCase()]);
  if (name !== undefined && name.length > NAME_CHARACTERS_MAX)
    throw invalid(header, `at most ${NAME_CHARACTERS_MAX} characters`);
  return name;
}

/** A name from a path, a query or a body. Throws `invalid_field`. */
export function nameOf(
  param: string,
  value: unknown,
  expected = `of 1 to ${NAME_CHARACTERS_MAX} characters`,
): string {
  if (typeof value === 'string' && value !== '' && value.length <= NAME_CHARACTERS_MAX) return value;
  throw invalid(param, expected);
}

/** A whole number of `unit` from 1 to `max`, or `undefined` without the header. Throws `invalid_field`. */
export function numberIn(
  header: string,
  headers: IncomingHttpHeaders,
  unit: string,
  max: number,
): number | undefined {
  const value = single(headers[header.toLowerCase()]);
  if (value === undefined) return undefined;
  const number = /^\d{1,16}$/.test(value) ? Number(value) : 0;
  if (number < 1 || number > max) throw invalid(header, `a number of ${unit}, from 1 to ${max}`);
  return number;
}

export const single = (header: string | string[] | undefined): string | undefined =>
  header === undefined || header === '' ? undefined : String(header);

export const invalid = (param: string, expected: string): ApiError =>
  apiError('invalid_field', { param, expected });
