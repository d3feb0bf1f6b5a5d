import { isUtf8 } from 'node:buffer';
import { apiError } from './errors.ts';
import { excessIn, isObject } from './json.ts';

const NO_BYTES = Buffer.alloc(0);

export type Fields = Readonly<Record<string, unknown>>;

/** A request body, both raw and parsed. */
export interface JsonBody {
  readonly text: string;
  readonly fields: Fields;
}

/** Throws `invalid_json` if the body is malformed or exceeds a parsing limit. */
export function readJsonBody(bytes: Buffer = NO_BYTES): JsonBody {
  if (!isUtf8(bytes)) throw apiError('invalid_json', { detail: 'it is not UTF-8.' });
  const text = bytes.toString('utf8');
  const excess = excessIn(text);
  if (excess !== undefined) throw apiError('invalid_json', { detail: `it ${excess}; send less.` });
  let fields: unknown;
  try {
    fields = JSON.parse(text);
  } catch (error) {
    throw apiError('invalid_json', { detail: placeOf(error, text) });
  }
  if (!isObject(fields)) throw apiError('invalid_json', { detail: 'it must be an object.' });
  return { text, fields };
}

/** Adds fields and keeps the rest of the text unchanged, because parsing would round large numbers. */
export function withFields({ text, fields }: JsonBody, added: Fields): JsonBody {
  const all = { ...fields, ...added };
  const isInserted =
    Object.keys(fields).length > 0 && !Object.keys(added).some((name) => Object.hasOwn(fields, name));
  if (!isInserted) return { text: JSON.stringify(all), fields: all };
  return { text: text.replace('{', () => `${JSON.stringify(added).slice(0, -1)},`), fields: all };
}

/**
 * Returns only the position, because the parser's message quotes the surrounding text, which is the client's prompt.
 */
function placeOf(error: unknown, text: string): string {
  if (text === '') return 'it is empty.';
  const [, position] = /at position (\d+)/.exec((error as SyntaxError).message) ?? [];
  return position === undefined ? 'it ends too early or is malformed.' : `malformed at position ${position}.`;
}
