import { type Invocation, UsageError } from './command.ts';
import { findCommand, membersOf } from './command-line.ts';
import { commandHelp, groupHelp, overview } from './help.ts';

export async function run({ operands }: Invocation): Promise<void> {
  process.stdout.write(helpOn(operands));
}

/** `words`: a command, a group of commands, or none. */
function helpOn(words: readonly string[]): string {
  const [first] = words;
  if (first === undefined) return overview();
  if (words.length === 1 && membersOf(first).length > 0) return groupHelp(first);
  const { command, words: rest } = findCommand(words);
  if (rest.length > 0) throw new UsageError(`unexpected argument "${rest[0]}".`);
  return commandHelp(command);
}
