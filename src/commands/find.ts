import { suggestion } from '../config/suggestion.ts';
import { type CommandDescription, UsageError } from './command.ts';
import { COMMANDS } from './table.ts';

export interface FoundCommand {
  readonly command: CommandDescription;
  /** What follows its name. */
  readonly words: readonly string[];
}

/** The command that these words begin with. Throws a {@link UsageError}. */
export function findCommand(words: readonly string[]): FoundCommand {
  const [first = '', second = ''] = words;
  const pair = COMMANDS.find(({ name }) => name === `${first} ${second}`);
  if (pair) return { command: pair, words: words.slice(2) };
  const single = COMMANDS.find(({ name }) => name === first);
  if (single) return { command: single, words: words.slice(1) };
  const members = membersOf(first);
  if (members.length === 0)
    throw new UsageError(`unknown command "${first}".${suggestion(first, firstWords())}`);
  if (second === '' || second.startsWith('-'))
    throw new UsageError(`${first} needs one of ${members.join(', ')}.`);
  throw new UsageError(`unknown command "${first} ${second}".${suggestion(second, members)}`);
}

/** What may follow the first word of a command that has two: `runs` → `list`, `show`, … */
export const membersOf = (first: string): string[] =>
  COMMANDS.filter(({ name }) => name.startsWith(`${first} `)).map(({ name }) => name.slice(first.length + 1));

/** Each once, in order. */
export const firstWords = (): string[] => [
  ...new Set(COMMANDS.map(({ name }) => name.split(' ', 1)[0] ?? '')),
];
