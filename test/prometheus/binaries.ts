import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { debianProgram, type Missing } from '../debian-program.ts';

const run = promisify(execFile);

export interface PrometheusBinaries {
  readonly prometheus: string;
  readonly promtool: string;
}

/** This machine's Prometheus, or Debian's, and the tool that accompanies it. */
export async function prometheusBinaries(): Promise<PrometheusBinaries | Missing> {
  const found = await debianProgram('prometheus');
  if ('missing' in found) return found;
  return { prometheus: found.path, promtool: join(dirname(found.path), 'promtool') };
}

/** Rejects with the tool's output if it finds a problem. */
export const promtool = (binary: string, ...words: readonly string[]) => run(binary, [...words]);
