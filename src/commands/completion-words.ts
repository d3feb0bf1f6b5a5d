import type { CommandDescription, WordSource } from './command.ts';
import { firstWords, membersOf } from './command-line.ts';
import { COMMANDS } from './table.ts';

/** One word that can be typed, and what it is. */
export interface Suggestion {
  readonly word: string;
  readonly says: string;
}

/** What can come after `holdfast`. */
export const firstSuggestions = (): Suggestion[] =>
  firstWords().map((word) => ({
    word,
    says: COMMANDS.find(({ name }) => name === word)?.says ?? membersOf(word).join(', '),
  }));

/** First words that need a second one. */
export const groups = (): string[] => firstWords().filter((word) => membersOf(word).length > 0);

/** What can come after the first word of a group. */
export const memberSuggestions = (group: string): Suggestion[] =>
  membersOf(group).map((word) => ({
    word,
    says: COMMANDS.find(({ name }) => name === `${group} ${word}`)?.says ?? '',
  }));

/** Of a switch, `undefined`. */
export const optionSuggestions = ({
  options,
}: CommandDescription): (Suggestion & { readonly completes: WordSource | undefined })[] => [
  ...options.map(({ name, value, says, completes }) => ({
    word: `--${name}`,
    says,
    completes: value === undefined ? undefined : (completes ?? ('nothing' as const)),
  })),
  { word: '--help', says: 'what the command takes', completes: undefined },
];

/** Options of `holdfast` itself. */
export const OWN_OPTIONS: readonly Suggestion[] = [
  { word: '--version', says: 'print the version' },
  { word: '--help', says: 'what there is' },
];
