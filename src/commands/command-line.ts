import { type ParseArgsConfig, parseArgs } from 'node:util';
import { suggestion } from '../config/problem.ts';
import { type CommandDescription, type Invocation, UsageError, type WordSource } from './command.ts';
import { COMMANDS, firstWords } from './table.ts';

interface FoundCommand {
  readonly command: CommandDescription;
  readonly words: readonly string[];
}

/** Finds the command that these words begin with. Throws a {@link UsageError}. */
export function findCommand(words: readonly string[]): FoundCommand {
  const [first = '', second = ''] = words;
  const pair = COMMANDS.find(({ name }) => name === `${first} ${second}`);
  if (pair) return { command: pair, words: words.slice(2) };
  const single = COMMANDS.find(({ name }) => name === first);
  if (single) return { command: single, words: words.slice(1) };
  const members = membersOf(first);
  if (members.length === 0)
    throw new UsageError(
      `unknown command "${first}".${suggestion(first, [...firstWords(), ...OWN_OPTIONS.map(({ word }) => word)])}`,
    );
  if (second === '' || second.startsWith('-'))
    throw new UsageError(`${first} needs one of ${members.join(', ')}.`);
  throw new UsageError(`unknown command "${first} ${second}".${suggestion(second, members)}`);
}

/** The second words of a two-word command: `runs` → `list`, `show`, … */
export const membersOf = (first: string): string[] =>
  COMMANDS.filter(({ name }) => name.startsWith(`${first} `)).map(({ name }) => name.slice(first.length + 1));

/** Throws a {@link UsageError} for anything that the command doesn't accept. */
export function parseInvocation(
  { name, operand, options }: CommandDescription,
  words: readonly string[],
): Invocation {
  const args = [...words];
  const known = Object.fromEntries(
    options.map((option) => [
      option.name,
      {
        type: option.value === undefined ? 'boolean' : 'string',
        multiple: option.many === true,
      } as const,
    ]),
  );
  let parsed: { values: Record<string, unknown>; positionals: string[] };
  try {
    parsed = parseArgs({ args, options: known, allowPositionals: true });
  } catch (error) {
    throw new UsageError(unknownOption(args, known) ?? (error as Error).message);
  }
  const { values, positionals } = parsed;
  const operands_max = operand?.many ? Number.POSITIVE_INFINITY : operand ? 1 : 0;
  if (positionals.length > operands_max)
    throw new UsageError(`unexpected argument "${positionals[operands_max]}".`);
  if (operand?.required && positionals.length === 0)
    throw new UsageError(
      operand.missing ?? `${name} needs ${operand.name}: holdfast ${name} ${operand.name}`,
    );
  const strings = Object.entries(values).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  const lists = Object.entries(values).filter((entry): entry is [string, string[]] =>
    Array.isArray(entry[1]),
  );
  const switches = Object.entries(values).filter(([, value]) => value === true);
  return {
    operands: positionals,
    values: Object.fromEntries(strings),
    lists: Object.fromEntries(lists),
    switches: new Set(switches.map(([option]) => option)),
  };
}

/** The error for the first unknown option, with a suggestion that `parseArgs` doesn't make. */
function unknownOption(args: string[], options: NonNullable<ParseArgsConfig['options']>): string | undefined {
  const { tokens } = parseArgs({ args, options, strict: false, tokens: true });
  const unknown = tokens.find((token) => token.kind === 'option' && !Object.hasOwn(options, token.name));
  if (unknown?.kind !== 'option') return undefined;
  const names = [...Object.keys(options), 'help'].map((name) => `--${name}`);
  return `unknown option "${unknown.rawName}".${suggestion(unknown.rawName, names)}`;
}

/** A word to complete, with its description. */
export interface Suggestion {
  readonly word: string;
  readonly says: string;
}

/** Completions after `holdfast`. */
export const firstSuggestions = (): Suggestion[] =>
  firstWords().map((word) => ({
    word,
    says: COMMANDS.find(({ name }) => name === word)?.says ?? membersOf(word).join(', '),
  }));

/** First words that need a second one. */
export const groups = (): string[] => firstWords().filter((word) => membersOf(word).length > 0);

/** Completions after the first word of a group. */
export const memberSuggestions = (group: string): Suggestion[] =>
  membersOf(group).map((word) => ({
    word,
    says: COMMANDS.find(({ name }) => name === `${group} ${word}`)?.says ?? '',
  }));

interface OptionSuggestion extends Suggestion {
  /** `undefined` for a switch. */
  readonly completes: WordSource | undefined;
  /** The option may be repeated. */
  readonly many: boolean;
}

export const optionSuggestions = ({ options }: CommandDescription): OptionSuggestion[] => [
  ...options.map(({ name, value, says, completes, many = false }) => ({
    word: `--${name}`,
    says,
    completes: value === undefined ? undefined : (completes ?? ('nothing' as const)),
    many,
  })),
  { word: '--help', says: 'show the options of the command', completes: undefined, many: false },
];

/** Options of `holdfast` itself. */
export const OWN_OPTIONS: readonly Suggestion[] = [
  { word: '--version', says: 'print the version' },
  { word: '--help', says: 'list the commands' },
];
