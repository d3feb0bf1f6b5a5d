import { isDeepStrictEqual } from 'node:util';
import { isObject } from '../lib/json.ts';
import { formatPath, type KeyPath } from './key-path.ts';

/**
 * The names of settings that differ, such as `upstreams.openai.base_url`. A list counts as one setting, and so does a
 * section that only one side has. Never includes values.
 */
export function changedSettings(before: unknown, after: unknown, path: KeyPath = []): string[] {
  if (!isObject(before) || !isObject(after))
    return isDeepStrictEqual(before, after) ? [] : [formatPath(path)];
  const [keys, others] = [Object.keys(before), Object.keys(after)];
  const inner = [...new Set([...keys, ...others])].flatMap((key) =>
    changedSettings(before[key], after[key], [...path, key]),
  );
  // The order matters because models without a route go to the first upstream.
  const isReordered = inner.length === 0 && formatPath(path) === 'upstreams' && keys[0] !== others[0];
  return isReordered ? [formatPath(path)] : inner;
}
