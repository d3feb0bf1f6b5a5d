import type { CommandDescription, WordSource } from './command.ts';
import {
  firstSuggestions,
  groups,
  memberSuggestions,
  OWN_OPTIONS,
  optionSuggestions,
  type Suggestion,
} from './command-line.ts';
import { COMMANDS } from './table.ts';

/** A script that makes fish complete `holdfast`, to be sourced. */
export const fishCompletion = (): string =>
  [
    '# Completions of holdfast for fish: holdfast completion fish | source',
    'complete -c holdfast -f',
    ...OWN_OPTIONS.map(({ word, says }) => line('__fish_is_first_arg', `-l ${word.slice(2)}`, says)),
    ...firstSuggestions().map((suggestion) => offered('__fish_is_first_arg', suggestion)),
    ...groups().flatMap((group) => {
      const members = memberSuggestions(group);
      const names = members.map(({ word }) => word).join(' ');
      const before = `__fish_seen_subcommand_from ${group}; and not __fish_seen_subcommand_from ${names}`;
      return members.map((suggestion) => offered(before, suggestion));
    }),
    ...COMMANDS.flatMap(commandLines),
    '',
  ].join('\n');

function commandLines(command: CommandDescription): string[] {
  const condition = command.name
    .split(' ')
    .map((word) => `__fish_seen_subcommand_from ${word}`)
    .join('; and ');
  const operand = command.operand?.completes ?? 'nothing';
  return [
    ...optionSuggestions(command).map(({ word, says, completes }) =>
      line(condition, `-l ${word.slice(2)}${completes === undefined ? '' : ` ${value(completes)}`}`, says),
    ),
    ...(operand === 'nothing' ? [] : [`complete -c holdfast -n ${quoted(condition)} ${value(operand)}`]),
  ];
}

/** Files are offered by `-F`, and not otherwise. */
function value(source: WordSource): string {
  if (source === 'file') return '-r -F';
  return source === 'nothing' ? '-x' : `-x -a ${quoted(source.join(' '))}`;
}

const offered = (condition: string, { word, says }: Suggestion): string =>
  line(condition, `-a ${word}`, says);

const line = (condition: string, what: string, says: string): string =>
  `complete -c holdfast -n ${quoted(condition)} ${what} -d ${quoted(says)}`;

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
