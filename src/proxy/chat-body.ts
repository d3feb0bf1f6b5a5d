import { isUtf8 } from 'node:buffer';
import { apiError } from '../errors.ts';
import type { ChatRequest } from './wires/chat-request.ts';

/** Longer than any model's name; patterns of routes are matched against it. */
export const MODEL_CHARACTERS_MAX = 256;

type Fields = Readonly<Record<string, unknown>>;

/** The body of a request for a chat completion: as it came, and parsed. */
export interface ChatBody {
  readonly text: string;
  readonly fields: Fields;
}

/** Throws `invalid_json` for what no provider could read either. */
export function readChatBody(body: Uint8Array | undefined): ChatBody {
  const bytes = Buffer.from(body ?? '');
  if (!isUtf8(bytes)) throw apiError('invalid_json', { detail: 'it is not UTF-8.' });
  const text = bytes.toString('utf8');
  let fields: unknown;
  try {
    fields = JSON.parse(text);
  } catch (error) {
    throw apiError('invalid_json', { detail: placeOf(error, text) });
  }
  if (!isFields(fields)) throw apiError('invalid_json', { detail: 'it must be an object.' });
  return { text, fields };
}

/** The parser quotes the text around the fault, which is the client's prompt: only its position is told. */
function placeOf(error: unknown, text: string): string {
  if (text === '') return 'it is empty.';
  const [, position] = /at position (\d+)/.exec((error as SyntaxError).message) ?? [];
  return position === undefined ? 'it ends too early or is malformed.' : `malformed at position ${position}.`;
}

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
const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isStrings = (value: unknown) => Array.isArray(value) && value.every((item) => typeof item === 'string');
