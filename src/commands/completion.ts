import { suggestion } from '../config/problem.ts';
import {
  type CommandDescription,
  type Invocation,
  type OperandSource,
  UsageError,
  type WordSource,
} from './command.ts';
import {
  firstSuggestions,
  groups,
  memberSuggestions,
  OWN_OPTIONS,
  optionSuggestions,
  type Suggestion,
} from './command-line.ts';
import { COMMANDS } from './table.ts';

/** The word typed at this position. */
const typed = (place: string): string => `\${COMP_WORDS[${place}]}`;

/** A bash completion script, to be sourced. Also works with bash 3.2. */
export const bashCompletion = (): string =>
  [
    '# Completions of holdfast for bash: source <(holdfast completion bash)',
    '_holdfast() {',
    `  local current="${typed('COMP_CWORD')}" previous="${typed('COMP_CWORD-1')}"`,
    `  local command="${typed('1')}" position=2`,
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
      `      command="$command ${typed('2')}" position=3`,
      '      ;;',
    ]),
    '  esac',
    '  case "$command" in',
    ...COMMANDS.flatMap(bashCase),
    '  esac',
    '}',
    '_holdfast_words() {',
    '  COMPREPLY=($(compgen -W "$1" -- "$current"))',
    '}',
    '_holdfast_commands() {',
    '  if [ "$COMP_CWORD" -eq "$position" ]; then',
    `    _holdfast_words "${wordsOf(firstSuggestions())}"`,
    '    return',
    '  fi',
    '  case "$previous" in',
    ...groups().map((group) => `    ${group}) _holdfast_words "${wordsOf(memberSuggestions(group))}" ;;`),
    '  esac',
    '}',
    '_holdfast_files() {',
    '  type compopt >/dev/null 2>&1 && compopt -o filenames',
    "  local IFS=$'\\n'",
    '  COMPREPLY=($(compgen -f -- "$current"))',
    '}',
    'complete -F _holdfast holdfast',
    '',
  ].join('\n');

function bashCase(command: CommandDescription): string[] {
  const options = optionSuggestions(command);
  const valued = options.flatMap(({ word, completes }) =>
    completes === undefined ? [] : [{ word, completes }],
  );
  return [
    `    '${command.name}')`,
    ...(valued.length > 0
      ? [
          '      case "$previous" in',
          ...valued.map(({ word, completes }) => `        ${word}) ${bashAction(completes)}; return ;;`),
          '      esac',
        ]
      : []),
    '      case "$current" in',
    `        -*) _holdfast_words "${wordsOf(options)}"; return ;;`,
    '      esac',
    `      ${bashOperand(command)}`,
    '      ;;',
  ];
}

/**
 * Completion of an operand at its position. If the command has options, bash can't know the position and offers it
 * every time.
 */
function bashOperand({ operand, options }: CommandDescription): string {
  const source = operand?.completes ?? 'nothing';
  const place = options.length === 0 && !operand?.many ? '[ "$COMP_CWORD" -eq "$position" ] && ' : '';
  return source === 'nothing' ? ':' : `${place}${bashAction(source)}`;
}

function bashAction(source: OperandSource): string {
  if (source === 'file') return '_holdfast_files';
  if (source === 'command') return '_holdfast_commands';
  return source === 'nothing' ? ':' : `_holdfast_words "${source.join(' ')}"`;
}

const wordsOf = (suggestions: readonly Suggestion[]): string => suggestions.map(({ word }) => word).join(' ');

/** A fish completion script, to be sourced. */
export const fishCompletion = (): string =>
  [
    '# Completions of holdfast for fish: holdfast completion fish | source',
    'complete -c holdfast -f',
    ...OWN_OPTIONS.map(({ word, says }) => fishLine('__fish_is_first_arg', `-l ${word.slice(2)}`, says)),
    ...firstSuggestions().map((suggestion) => fishOffer('__fish_is_first_arg', suggestion)),
    ...groups().flatMap((group) => {
      const members = memberSuggestions(group);
      const names = members.map(({ word }) => word).join(' ');
      const before = `__fish_seen_subcommand_from ${group}; and not __fish_seen_subcommand_from ${names}`;
      return members.map((suggestion) => fishOffer(before, suggestion));
    }),
    ...COMMANDS.flatMap(fishLines),
    '',
  ].join('\n');

function fishLines(command: CommandDescription): string[] {
  const condition = command.name
    .split(' ')
    .map((word) => `__fish_seen_subcommand_from ${word}`)
    .join('; and ');
  return [
    ...optionSuggestions(command).map(({ word, says, completes }) =>
      fishLine(
        condition,
        `-l ${word.slice(2)}${completes === undefined ? '' : ` ${fishValue(completes)}`}`,
        says,
      ),
    ),
    ...fishOperand(command, condition),
  ];
}

function fishOperand({ name, operand }: CommandDescription, condition: string): string[] {
  const source = operand?.completes ?? 'nothing';
  if (source === 'nothing') return [];
  if (source !== 'command') return [`complete -c holdfast -n ${fishQuoted(condition)} ${fishValue(source)}`];
  // The members of a group are offered after its name, so only the first word is missing.
  const others = wordsOf(firstSuggestions().filter(({ word }) => word !== name));
  const first = `${condition}; and not __fish_seen_subcommand_from ${others}`;
  return firstSuggestions().map((suggestion) => fishOffer(first, suggestion));
}

/** `-F` enables file completion, which is off otherwise. */
function fishValue(source: WordSource): string {
  if (source === 'file') return '-r -F';
  return source === 'nothing' ? '-x' : `-x -a ${fishQuoted(source.join(' '))}`;
}

const fishOffer = (condition: string, { word, says }: Suggestion): string =>
  fishLine(condition, `-a ${word}`, says);

const fishLine = (condition: string, what: string, says: string): string =>
  `complete -c holdfast -n ${fishQuoted(condition)} ${what} -d ${fishQuoted(says)}`;

const fishQuoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

/** A zsh completion script: source it after `compinit`, or save it as `_holdfast` in `fpath`. */
export const zshCompletion = (): string =>
  [
    '#compdef holdfast',
    '# Completions of holdfast for zsh: source <(holdfast completion zsh)',
    '_holdfast() {',
    '  local command=$words[2]',
    '  if (( CURRENT == 2 )); then',
    ...zshDescribed('command', [...firstSuggestions(), ...OWN_OPTIONS], '    '),
    '    return',
    '  fi',
    '  case $command in',
    ...groups().flatMap((group) => [
      `    ${group})`,
      '      if (( CURRENT == 3 )); then',
      ...zshDescribed('command', memberSuggestions(group), '        '),
      '        return',
      '      fi',
      '      command="$command $words[3]"',
      '      shift words; (( CURRENT-- ))',
      '      ;;',
    ]),
    '  esac',
    '  shift words; (( CURRENT-- ))',
    '  case $command in',
    ...COMMANDS.flatMap(zshCase),
    '  esac',
    '}',
    '_holdfast_commands() {',
    '  if (( CURRENT == 2 )); then',
    ...zshDescribed('command', firstSuggestions(), '    '),
    '    return',
    '  fi',
    '  case $words[CURRENT-1] in',
    ...groups().flatMap((group) => [
      `    ${group})`,
      ...zshDescribed('command', memberSuggestions(group), '      '),
      '      ;;',
    ]),
    '  esac',
    '}',
    'if [ "$funcstack[1]" = "_holdfast" ]; then',
    '  _holdfast "$@"',
    'else',
    '  compdef _holdfast holdfast',
    'fi',
    '',
  ].join('\n');

function zshDescribed(what: string, suggestions: readonly Suggestion[], indent: string): string[] {
  return [
    `${indent}local -a suggestions=(`,
    ...suggestions.map(({ word, says }) => `${indent}  ${zshQuoted(`${word}:${says}`)}`),
    `${indent})`,
    `${indent}_describe ${what} suggestions`,
  ];
}

function zshCase(command: CommandDescription): string[] {
  const specifications = optionSuggestions(command).map(({ word, says, completes, many }) =>
    zshQuoted(
      `${many ? '*' : ''}${word}[${zshEscaped(says)}]${completes === undefined ? '' : `:${word.slice(2)}:${zshAction(completes)}`}`,
    ),
  );
  const { operand } = command;
  const operands = operand
    ? [zshQuoted(`${operand.many ? '*' : '1'}:${operand.name}:${zshAction(operand.completes ?? 'nothing')}`)]
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

function zshAction(source: OperandSource): string {
  if (source === 'file') return '_files';
  if (source === 'command') return '_holdfast_commands';
  return source === 'nothing' ? ' ' : `(${source.map((word) => word.replaceAll(':', '\\:')).join(' ')})`;
}

/** Brackets enclose an option's description and colons separate its parts, so both are escaped. */
const zshEscaped = (text: string): string => text.replace(/[[\]:\\]/g, '\\$&');

const zshQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** The generator of each shell's script. */
const SHELLS: Readonly<Record<string, () => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};

export async function run({ operands }: Invocation): Promise<void> {
  const [shell = ''] = operands;
  const script = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
  if (!script)
    throw new UsageError(
      `there are no completions for "${shell}".${suggestion(shell, Object.keys(SHELLS)) || ` Known: ${Object.keys(SHELLS).join(', ')}.`}`,
    );
  process.stdout.write(script());
}
