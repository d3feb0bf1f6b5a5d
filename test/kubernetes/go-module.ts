import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { MAY_INSTALL, notInstalled } from '../installs.ts';

const run = promisify(execFile);

/** The directory of a published Go module, downloaded if necessary, or the reason why it is unavailable. */
export async function goModule(
  module: string,
): Promise<{ readonly directory: string } | { readonly missing: string }> {
  if (!MAY_INSTALL) return { missing: notInstalled(module) };
  try {
    const { stdout } = await run('go', ['mod', 'download', '-json', module]);
    return { directory: JSON.parse(stdout).Dir };
  } catch (error) {
    const { stdout, message } = error as { stdout?: string; message: string };
    return { missing: `Go cannot get the module: ${stdout ? JSON.parse(stdout).Error : message}` };
  }
}
