import { VERSION } from '../lib/version.ts';
import { UsageError } from './command.ts';
import { findCommand, membersOf, parseInvocation } from './command-line.ts';
import { commandHelp, groupHelp, overview } from './help.ts';

/** The requested operation failed. */
const EXIT_FAILURE = 1;
/** The command or its configuration is unusable as given. */
const EXIT_USAGE = 2;

/**
 * Errors that the user can fix are printed without a stack. Matched by name, because their classes are in modules
 * imported on demand.
 */
const MENDABLE: Readonly<Record<string, number>> = {
  UsageError: EXIT_USAGE,
  ConfigurationError: EXIT_USAGE,
  StoreConfigurationError: EXIT_USAGE,
  ListenError: EXIT_USAGE,
  CommandFailure: EXIT_FAILURE,
};

/** Runs `holdfast` with these words and exits with its status. Rejects with errors that indicate a bug. */
export async function main(words: readonly string[]): Promise<never> {
  // The reader of the output, such as `head`, has closed the pipe.
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
