import { readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { segmentNumber } from '../checkpoint/file/names.ts';

/** The absolute directory of a file store, which also contains the generated secret; undefined for any other store. */
export function fileStoreDirectory(store: string): string | undefined {
  if (store === 'file') return stateDirectory(process.env);
  const path = /^file:(?:\/\/(?=\/))?(.+)$/s.exec(store)?.[1];
  return path === undefined ? undefined : resolve(path);
}

/**
 * The first that applies: the state directory assigned by a service manager or image, an existing store in the former
 * location `./data`, or the user's state directory for Holdfast. Without a home directory, `./data`.
 */
export function stateDirectory(environment: NodeJS.ProcessEnv): string {
  const { STATE_DIRECTORY = '', XDG_STATE_HOME = '' } = environment;
  // systemd separates several directories by colons.
  const [ofService = ''] = STATE_DIRECTORY.split(':');
  if (isAbsolute(ofService)) return ofService;
  const former = resolve('data');
  if (holdsStore(former)) return former;
  // The XDG Base Directory Specification says to ignore relative paths.
  if (isAbsolute(XDG_STATE_HOME)) return join(XDG_STATE_HOME, 'holdfast');
  const home = homeOf(environment);
  return home === undefined ? former : join(home, '.local/state/holdfast');
}

function holdsStore(directory: string): boolean {
  try {
    return readdirSync(directory).some((name) => segmentNumber(name) !== undefined);
  } catch {
    return false;
  }
}

/** Users without a home, as in containers, have none or the root directory. */
function homeOf({ HOME }: NodeJS.ProcessEnv): string | undefined {
  try {
    const home = HOME ?? homedir();
    return isAbsolute(home) && home !== resolve('/') ? home : undefined;
  } catch {
    return undefined;
  }
}
