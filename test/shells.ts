import { debianProgram } from './debian-program.ts';

/** A shell of this machine, installed when that can be done; undefined when there is none. */
export async function shellBinary(name: 'bash' | 'zsh' | 'fish'): Promise<string | undefined> {
  const program = await debianProgram(name);
  return 'path' in program ? program.path : undefined;
}
