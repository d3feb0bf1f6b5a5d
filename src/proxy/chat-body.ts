import { apiError } from '../errors.ts';
import { type Fields, isFields } from './json-body.ts';
import type { ChatRequest } from './wires/chat-request.ts';

/** Longer than any model's name; patterns of routes are matched against it. */
export const MODEL_CHARACTERS_MAX = 256;

/** What a run relies on; everything else is left to the provider to judge. */
export function checkChatRequest(fields: Fields): ChatRequest {
  const { model, messages, stream_options, tools, stop } = fields;
  if (model === undefined) throw missing('model', 'the name of a model');
  if (typeof model !== 'string' || model === '' || model.length > MODEL_CHARACTERS_MAX) {
    throw invalid('model', `a string of 1 to ${MODEL_CHARACTERS_MAX} characters`);
  }
  if (messages === undefined) throw missing('messages', 'a list of at least one message');
  if (!Array.isArray(messages) || messages.length === 0)
    throw invalid('messages', 'a list of at least one message');
  for (const [index, message] of messages.entries()) {
    if (!isFields(message) || typeof message.role !== 'string') {
      throw invalid(`messages[${index}]`, 'an object with a role');
    }
  }
  if (given(stream_options) && !isFields(stream_options)) throw invalid('stream_options', 'an object');
  if (given(tools) && !(Array.isArray(tools) && tools.every(isFields)))
    throw invalid('tools', 'a list of objects');
  if (given(stop) && typeof stop !== 'string' && !isStrings(stop))
    throw invalid('stop', 'a string or a list of strings');
  return fields as unknown as ChatRequest;
}

const missing = (param: string, expected: string) => apiError('missing_field', { param, expected });
const invalid = (param: string, expected: string) => apiError('invalid_field', { param, expected });
const given = (value: unknown) => value !== undefined && value !== null;
const isStrings = (value: unknown) => Array.isArray(value) && value.every((item) => typeof item === 'string');
