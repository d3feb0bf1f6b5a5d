import { type ApiError, apiError } from '../../../lib/errors.ts';
import { isObject } from '../../../lib/json.ts';
import type { Fields } from '../../../lib/json-body.ts';

/** Longer than any model's name; patterns of routes are matched against it. */
export const MODEL_CHARACTERS_MAX = 256;

/** Throws `missing_field` or `invalid_field`. */
export function checkModel({ model }: Fields): void {
  if (model === undefined) throw missing('model', 'the name of a model');
  if (typeof model !== 'string' || model === '' || model.length > MODEL_CHARACTERS_MAX) {
    throw invalid('model', `a string of 1 to ${MODEL_CHARACTERS_MAX} characters`);
  }
}

export function checkMessages({ messages }: Fields): void {
  if (messages === undefined) throw missing('messages', 'a list of at least one message');
  if (!Array.isArray(messages) || messages.length === 0)
    throw invalid('messages', 'a list of at least one message');
  for (const [index, message] of messages.entries()) {
    if (!isObject(message) || typeof message.role !== 'string')
      throw invalid(`messages[${index}]`, 'an object with a role');
  }
}

export function checkTools({ tools }: Fields): void {
  if (given(tools) && !(Array.isArray(tools) && tools.every(isObject)))
    throw invalid('tools', 'a list of objects');
}

export function checkStreamOptions({ stream_options }: Fields): void {
  if (given(stream_options) && !isObject(stream_options)) throw invalid('stream_options', 'an object');
}

export function checkStop({ stop }: Fields): void {
  if (given(stop) && typeof stop !== 'string' && !isStrings(stop))
    throw invalid('stop', 'a string or a list of strings');
}

const missing = (param: string, expected: string): ApiError => apiError('missing_field', { param, expected });
export const invalid = (param: string, expected: string): ApiError =>
  apiError('invalid_field', { param, expected });
export const given = (value: unknown): boolean => value !== undefined && value !== null;

export const isStrings = (value: unknown): boolean =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');
