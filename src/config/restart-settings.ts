import { isDeepStrictEqual } from 'node:util';
import { isObject } from '../lib/json.ts';
import type { Configuration } from './configuration.ts';
import { formatPath } from './key-path.ts';
import { CHECKPOINT_SCHEMA } from './recovery-schema.ts';

/** The keys of `checkpoint` that concern single runs and tasks. All others belong to the store, which stays open. */
const OF_EACH_RUN: ReadonlySet<string> = new Set(['durability', 'ended_task_ttl_s']);

/** Settings that a process keeps until it restarts. Each is a key or a whole section. */
export const RESTART_SETTINGS: readonly (readonly string[])[] = [
  ...['host', 'admin_host', 'port', 'admin_port'].map((key) => ['listen', key]),
  ['secret'],
  ['workers'],
  ...Object.keys(CHECKPOINT_SCHEMA.properties)
    .filter((key) => !OF_EACH_RUN.has(key))
    .map((key) => ['checkpoint', key]),
  ['limits', 'header_bytes'],
  ['status_page', 'content'],
  ['tracing'],
  ['metrics', 'gen_ai'],
  ['log', 'format'],
];

interface UntilRestart {
  /** The configuration that can take effect now. */
  readonly configuration: Configuration;
  /** Settings that only a restart applies, such as `listen.port`. */
  readonly pending: readonly string[];
}

/** `next`, with restart-only settings kept as they are in `running`. */
export function untilRestart(running: Configuration, next: Configuration): UntilRestart {
  let configuration: unknown = next;
  const pending: string[] = [];
  for (const path of RESTART_SETTINGS) {
    const kept = valueAt(running, path);
    if (isDeepStrictEqual(kept, valueAt(next, path))) continue;
    configuration = withValue(configuration, path, kept);
    pending.push(formatPath(path));
  }
  return { configuration: configuration as Configuration, pending };
}

function valueAt(tree: unknown, path: readonly string[]): unknown {
  return path.reduce((value, key) => (isObject(value) ? value[key] : undefined), tree);
}

function withValue(tree: unknown, [key = '', ...rest]: readonly string[], value: unknown): unknown {
  const section = isObject(tree) ? tree : {};
  const { [key]: child, ...others } = section;
  const changed = rest.length > 0 ? withValue(child, rest, value) : value;
  return changed === undefined ? others : { ...section, [key]: changed };
}
