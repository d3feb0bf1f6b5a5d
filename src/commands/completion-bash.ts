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

/** What was typed in this place. */
const word = (place: string): string => `\${COMP_WORDS[${place}]}`;

/** A script that makes bash complete `holdfast`, to be sourced. Works with bash 3.2 as well. */
export const bashCompletion = (): string =>
  [
    '# Completions of holdfast for bash: source <(holdfast completion bash)',
    '_holdfast() {',
    `  local current="${word('COMP_CWORD')}" previous="${word('COMP_CWORD-1')}"`,
    `  local command="${word('1')}" position=2`,
    '  COMPREPLY=()',
    '  if [ "$COMP_CWORD" -eq 1 ]; then',
    `    _holdfast_words "${wordsOf([...firstSuggestions(), ...OWN_OPTIONS])}"`,
    '    return',
    '  fi',
    '  case "$command" in',
    ...groups().flatMap((group) => [
      `    ${group})`,
      '      if [ "$COMP_CWORD" -eq 2 ]; then',
      `        _holdfast_words "${wordsOf(memberSuggestions(group))}"`,
      '        return',
      '      fi',
      `      command="$command ${word('2')}" position=3`,
      '      ;;',
    ]),
    '  esac',
    '  case "$command" in',
    ...COMMANDS.flatMap(commandCase),
    '  esac',
    '}',
    '_holdfast_words() {',
    '  COMPREPLY=($(compgen -W "$1" -- "$current"))',
    '}',
    '_holdfast_files() {',
    '  type compopt >/dev/null 2>&1 && compopt -o filenames',
    "  local IFS=$'\\n'",
    '  COMPREPLY=($(compgen -f -- "$current"))',
    '}',
    'complete -F _holdfast holdfast',
    '',
  ].join('\n');

function commandCase(command: CommandDescription): string[] {
  const options = optionSuggestions(command);
  const valued = options.flatMap(({ word, completes }) =>
    completes === undefined ? [] : [{ word, completes }],
  );
  return [
    `    '${command.name}')`,
    ...(valued.length > 0
      ? [
          '      case "$previous" in',
          ...valued.map(({ word, completes }) => `        ${word}) ${filling(completes)}; return ;;`),
          '      esac',
        ]
      : []),
    '      case "$current" in',
    `        -*) _holdfast_words "${wordsOf(options)}"; return ;;`,
    '      esac',
    `      ${operandFilling(command)}`,
    '      ;;',
  ];
}

/** Of one operand, in its place; where an option came before, bash cannot know the place and offers it again. */
function operandFilling({ operand, options }: CommandDescription): string {
  const source = operand?.completes ?? 'nothing';
  const place = options.length === 0 && !operand?.many ? '[ "$COMP_CWORD" -eq "$position" ] && ' : '';
  return source === 'nothing' ? ':' : `${place}${filling(source)}`;
}

function filling(source: WordSource): string {
  if (source === 'file') return '_holdfast_files';
  return source === 'nothing' ? ':' : `_holdfast_words "${source.join(' ')}"`;
}

const wordsOf = (suggestions: readonly Suggestion[]): string => suggestions.map(({ word }) => word).join(' ');
