import { type ExecFileOptions, execFile } from 'node:child_process';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** Runs a command until it exits. Returns its standard output; throws with all its output if it fails. */
export async function run(
  command: string,
  words: readonly string[],
  options: ExecFileOptions,
): Promise<string> {
  try {
    const { stdout } = await execute(command, words, { ...options, encoding: 'utf8' });
    return stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error([(error as Error).message, stdout, stderr].filter(Boolean).join('\n'), { cause: error });
  }
}
