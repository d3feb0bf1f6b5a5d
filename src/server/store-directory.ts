import { readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { segmentNumber } from '../checkpoint/file/names.ts';

/** The absolute directory of a file store, where the generated secret lies too; undefined for any other store. */
export function fileStoreDirectory(store: string): string | undefined {
  if (store === 'file') return stateDirectory(process.env);
  const path = /^file:(?:\/\/(?=\/))?(.+)$/s.exec(store)?.[1];
  return path === undefined ? undefined : resolve(path);
}

/**
 * The first that there is: what a service manager or an image has set aside for the state of this service, a store in `./data`,
 * where it used to be, and the directory for Holdfast among those of the user's programs. Without a home, `./data`.
 */
export function stateDirectory(environment: NodeJS.ProcessEnv): string {
  const { STATE_DIRECTORY = '', XDG_STATE_HOME = '' } = environment;
  // systemd separates several by colons.
  const [ofService = ''] = STATE_DIRECTORY.split(':');
  if (isAbsolute(ofService)) return ofService;
  const former = resolve('data');
  if (holdsStore(former)) return former;
  // A relative one does not count, says the XDG Base Directory Specification.
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

/** Users without a home, as containers have them, get none, or the root of the file system. */
function homeOf({ HOME }: NodeJS.ProcessEnv): string | undefined {
  try {
    const home = HOME ?? homedir();
    return isAbsolute(home) && home !== resolve('/') ? home : undefined;
  } catch {
    return undefined;
  }
}
