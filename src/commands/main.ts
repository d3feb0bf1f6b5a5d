import { VERSION } from '../lib/version.ts';
import { UsageError } from './command.ts';
import { findCommand, membersOf, parseInvocation } from './command-line.ts';
import { commandHelp, groupHelp, overview } from './help.ts';

/** Something that was asked for did not succeed. */
const EXIT_FAILURE = 1;
/** The command, or the configuration it needs, cannot be used as it is. */
const EXIT_USAGE = 2;

/** Errors that the caller can mend are printed without a stack. By name, because these come with modules loaded late. */
const MENDABLE: Readonly<Record<string, number>> = {
  UsageError: EXIT_USAGE,
  ConfigurationError: EXIT_USAGE,
  StoreConfigurationError: EXIT_USAGE,
  ListenError: EXIT_USAGE,
  CommandFailure: EXIT_FAILURE,
};

/** Carries out `holdfast` with these words, and ends the process with its status. Rejects with errors that are ours to mend. */
export async function main(words: readonly string[]): Promise<never> {
  // The reader of the output, such as `head`, has had enough of it.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
  try {
    process.exit(await carryOut(words));
  } catch (error) {
    const status = error instanceof Error ? MENDABLE[error.name] : undefined;
    if (!(error instanceof Error) || status === undefined) throw error;
    const hint = error instanceof UsageError ? '\nSee holdfast --help.' : '';
    process.stderr.write(`${error.message.replace(/^/gm, 'holdfast: ')}${hint}\n`);
    process.exit(status);
  }
}

/** Resolves with the exit status. */
async function carryOut(words: readonly string[]): Promise<number> {
  const [name = '--help'] = words;
  if (name === '--version' || name === '-v') return print(`${VERSION}\n`);
  if (isHelp(name)) return print(overview());
  if (isHelp(words[1]) && membersOf(name).length > 0) return print(groupHelp(name));
  const { command, words: rest } = findCommand(words);
  if (rest.some(isHelp)) return print(commandHelp(command));
  const invocation = parseInvocation(command, rest);
  const { run } = await command.load();
  return (await run(invocation)) ?? 0;
}

const isHelp = (word: string | undefined): boolean => word === '--help' || word === '-h';

function print(text: string): number {
  process.stdout.write(text);
  return 0;
}
