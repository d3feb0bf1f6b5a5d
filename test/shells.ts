import { debianProgram } from './debian-program.ts';

/** The path of a shell, installed if necessary and possible; undefined if there is none. */
export async function shellBinary(name: 'bash' | 'zsh' | 'fish'): Promise<string | undefined> {
  const program = await debianProgram(name);
  return 'path' in program ? program.path : undefined;
}
