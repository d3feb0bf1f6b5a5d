import { isDeepStrictEqual } from 'node:util';
import { isObject } from '../lib/json.ts';
import { formatPath, type KeyPath } from './key-path.ts';

/**
 * The settings that differ, by name: `upstreams.openai.base_url`. A list is one setting, and so is a section that only one
 * of the two has. Never has a value.
 */
export function changedSettings(before: unknown, after: unknown, path: KeyPath = []): string[] {
  if (!isObject(before) || !isObject(after))
    return isDeepStrictEqual(before, after) ? [] : [formatPath(path)];
  const [keys, others] = [Object.keys(before), Object.keys(after)];
  const inner = [...new Set([...keys, ...others])].flatMap((key) =>
    changedSettings(before[key], after[key], [...path, key]),
  );
  // The first upstream is the one for all that is on no route.
  const isReordered = inner.length === 0 && formatPath(path) === 'upstreams' && keys[0] !== others[0];
  return isReordered ? [formatPath(path)] : inner;
}
