import type { Writable } from 'node:stream';
import { ConfigurationError } from '../config/problem.ts';
import { CONTROLS } from '../lib/text.ts';

const ESCAPE = '\u001b';
const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 } as const;
export type Style = keyof typeof CODES;

/** An output that may be a terminal. */
export interface Output extends Pick<Writable, 'write'> {
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** Gives a text a style, where its output has any. */
export type Paint = (text: string, style: Style) => string;

/** Colours are for terminals, unless their user wants none (https://no-color.org). */
export function painter(output: Output, environment: NodeJS.ProcessEnv): Paint {
  const isPlain = output.isTTY !== true || (environment.NO_COLOR ?? '') !== '' || environment.TERM === 'dumb';
  return (text, style) => (isPlain ? text : `${ESCAPE}[${CODES[style]}m${text}${ESCAPE}[0m`);
}

/** The columns of a terminal; every other output takes lines of any length. */
export const widthOfOutput = ({ isTTY, columns }: Output): number =>
  isTTY === true && columns !== undefined && columns > 0 ? columns : Number.POSITIVE_INFINITY;

/** Foreign text on one line: control characters are spelled out. */
export const printable = (text: string): string => text.toWellFormed().replace(CONTROLS, spelled);

/** The same of text that may have several lines. */
export const printableLines = (text: string): string =>
  text.toWellFormed().replace(CONTROLS, (control) => (/[\n\t]/.test(control) ? control : spelled(control)));

const spelled = (control: string): string =>
  `\\u${(control.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`;

/** One document. What a terminal would obey is escaped as JSON has it. */
export const printJson = (document: object): void =>
  void process.stdout.write(`${printableLines(JSON.stringify(document, undefined, 2))}\n`);

/** One line of many. */
export const printJsonLine = (line: object): void =>
  void process.stdout.write(`${printableLines(JSON.stringify(line))}\n`);

/** What `load` returns or resolves with. Where the output is JSON, what is wrong with the configuration is printed as such: `undefined`. */
export async function orProblems<Loaded>(
  json: boolean,
  load: () => Loaded | Promise<Loaded>,
): Promise<Loaded | undefined> {
  try {
    return await load();
  } catch (error) {
    if (!json || !(error instanceof ConfigurationError)) throw error;
    printJson({ ok: false, problems: error.problems });
    return undefined;
  }
}
