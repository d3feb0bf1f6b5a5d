import { VERSION } from '../lib/version.ts';
import type { CommandDescription, OptionDescription } from './command.ts';
import { COMMANDS } from './table.ts';

const INDENT = '  ';
const GAP = '   ';

/** The command's syntax: `check [options] FILE`. */
export const synopsis = ({ name, operand, options }: CommandDescription): string =>
  [name, ...(options.length > 0 ? ['[options]'] : []), ...(operand ? [operandText(operand)] : [])].join(' ');

export const optionText = ({ name, value }: OptionDescription): string =>
  value === undefined ? `--${name}` : `--${name} ${value}`;

/** `holdfast --help` */
export const overview = (): string =>
  [
    `holdfast ${VERSION}: an OpenAI-compatible streaming proxy that keeps an answer alive when something breaks.`,
    '',
    'Usage',
    ...columns([
      ...COMMANDS.map((command) => [`holdfast ${synopsis(command)}`, command.says] as const),
      ['holdfast COMMAND --help', 'show the options of a command'],
      ['holdfast --version', ''],
      ['holdfast --help', ''],
    ]),
    '',
    'Exit status: 0 success, 1 the command failed or found a problem, 2 the command or the configuration cannot be used.',
    '',
  ].join('\n');

/** `holdfast COMMAND --help` */
export const commandHelp = (command: CommandDescription): string =>
  [
    `holdfast ${synopsis(command)}: ${command.says}.`,
    ...(command.options.length > 0
      ? ['', 'Options', ...columns(command.options.map((option) => [optionText(option), option.says]))]
      : []),
    '',
  ].join('\n');

/** `holdfast runs --help`: the commands that begin with this word. */
export const groupHelp = (group: string): string =>
  [
    'Usage',
    ...columns(
      COMMANDS.filter(({ name }) => name.startsWith(`${group} `)).map((command) => [
        `holdfast ${synopsis(command)}`,
        command.says,
      ]),
    ),
    '',
  ].join('\n');

function operandText({ name, required, many }: NonNullable<CommandDescription['operand']>): string {
  const text = many ? `${name} ...` : name;
  return required ? text : `[${text}]`;
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `${INDENT}${right === '' ? left : left.padEnd(width) + GAP + right}`);
}
