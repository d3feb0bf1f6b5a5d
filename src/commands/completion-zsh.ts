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

/** A script that makes zsh complete `holdfast`: to be sourced after `compinit`, or a file `_holdfast` in `fpath`. */
export const zshCompletion = (): string =>
  [
    '#compdef holdfast',
    '# Completions of holdfast for zsh: source <(holdfast completion zsh)',
    '_holdfast() {',
    '  local command=$words[2]',
    '  if (( CURRENT == 2 )); then',
    ...described('command', [...firstSuggestions(), ...OWN_OPTIONS], '    '),
    '    return',
    '  fi',
    '  case $command in',
    ...groups().flatMap((group) => [
      `    ${group})`,
      '      if (( CURRENT == 3 )); then',
      ...described('command', memberSuggestions(group), '        '),
      '        return',
      '      fi',
      '      command="$command $words[3]"',
      '      shift words; (( CURRENT-- ))',
      '      ;;',
    ]),
    '  esac',
    '  shift words; (( CURRENT-- ))',
    '  case $command in',
    ...COMMANDS.flatMap(commandCase),
    '  esac',
    '}',
    'if [ "$funcstack[1]" = "_holdfast" ]; then',
    '  _holdfast "$@"',
    'else',
    '  compdef _holdfast holdfast',
    'fi',
    '',
  ].join('\n');

function described(what: string, suggestions: readonly Suggestion[], indent: string): string[] {
  return [
    `${indent}local -a suggestions=(`,
    ...suggestions.map(({ word, says }) => `${indent}  ${quoted(`${word}:${says}`)}`),
    `${indent})`,
    `${indent}_describe ${what} suggestions`,
  ];
}

function commandCase(command: CommandDescription): string[] {
  const specifications = optionSuggestions(command).map(({ word, says, completes }) =>
    quoted(
      `${word}[${escaped(says)}]${completes === undefined ? '' : `:${word.slice(2)}:${action(completes)}`}`,
    ),
  );
  const { operand } = command;
  const operands = operand
    ? [quoted(`${operand.many ? '*' : '1'}:${operand.name}:${action(operand.completes ?? 'nothing')}`)]
    : [];
  return [
    `    '${command.name}')`,
    '      _arguments \\',
    ...[...specifications, ...operands].map(
      (specification, index, all) => `        ${specification}${index < all.length - 1 ? ' \\' : ''}`,
    ),
    '      ;;',
  ];
}

function action(source: WordSource): string {
  if (source === 'file') return '_files';
  return source === 'nothing' ? ' ' : `(${source.map((word) => word.replaceAll(':', '\\:')).join(' ')})`;
}

/** Brackets end the description of an option, and colons what comes before the next part. */
const escaped = (text: string): string => text.replace(/[[\]:\\]/g, '\\$&');

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
