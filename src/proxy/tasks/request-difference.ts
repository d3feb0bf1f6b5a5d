import { isDeepStrictEqual } from 'node:util';
import { parseJson } from '../../lib/json.ts';
import { VOLATILE_FIELDS } from '../resume/request-digest.ts';

const PATHS_MAX = 8;
/** Clients choose field names, so names that might contain prose are not repeated. */
const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
/** The fields in which wires have their conversations. */
const CONVERSATION_FIELDS = ['messages', 'input'];

/**
 * Where two requests differ, for debugging: `['messages[4]', 'tools']`. Entries of a conversation count from 0 and come
 * first; if one request has extra entries, only the first is named. At most eight paths, without the fields that
 * `requestDigest` ignores, or whose names aren't plain identifiers.
 *
 * `before`, `now`: JSON objects as text.
 */
export function changedPaths(before: string, now: string): readonly string[] {
  const [earlier, later] = [fieldsOf(before), fieldsOf(now)];
  const names = new Set([...CONVERSATION_FIELDS, ...later.keys(), ...earlier.keys()]);
  return [...names]
    .filter((name) => PLAIN_NAME.test(name) && !VOLATILE_FIELDS.has(name))
    .flatMap((name) => pathsIn(name, earlier.get(name), later.get(name)))
    .slice(0, PATHS_MAX);
}

const fieldsOf = (body: string): ReadonlyMap<string, unknown> =>
  new Map(Object.entries(parseJson(body) as object));

function pathsIn(name: string, earlier: unknown, later: unknown): readonly string[] {
  const isConversation = CONVERSATION_FIELDS.includes(name);
  if (!isConversation || !Array.isArray(earlier) || !Array.isArray(later))
    return isDeepStrictEqual(earlier, later) ? [] : [name];
  const shared = Math.min(earlier.length, later.length);
  const places = Array.from({ length: shared }, (_, index) => index).filter(
    (index) => !isDeepStrictEqual(earlier[index], later[index]),
  );
  if (earlier.length !== later.length) places.push(shared);
  return places.map((index) => `${name}[${index}]`);
}
