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

/** Styles a text if its output supports it. */
export type Paint = (text: string, style: Style) => string;

/** Colours only on terminals, unless the user disables them (https://no-color.org). */
export function painter(output: Output, environment: NodeJS.ProcessEnv): Paint {
  const isPlain = output.isTTY !== true || (environment.NO_COLOR ?? '') !== '' || environment.TERM === 'dumb';
  return (text, style) => (isPlain ? text : `${ESCAPE}[${CODES[style]}m${text}${ESCAPE}[0m`);
}

/** The terminal's width; infinite for any other output. */
export const widthOfOutput = ({ isTTY, columns }: Output): number =>
  isTTY === true && columns !== undefined && columns > 0 ? columns : Number.POSITIVE_INFINITY;

/** Untrusted text on one line, with control characters spelled out. */
export const printable = (text: string): string => text.toWellFormed().replace(CONTROLS, spelled);

/** Like {@link printable}, but keeps line breaks and tabs. */
export const printableLines = (text: string): string =>
  text.toWellFormed().replace(CONTROLS, (control) => (/[\n\t]/.test(control) ? control : spelled(control)));

const spelled = (control: string): string =>
  `\\u${(control.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`;

/** Prints one JSON document. Characters that a terminal would interpret are escaped as in JSON. */
export const printJson = (document: object): void =>
  void process.stdout.write(`${printableLines(JSON.stringify(document, undefined, 2))}\n`);

/** Prints one line of JSON Lines. */
export const printJsonLine = (line: object): void =>
  void process.stdout.write(`${printableLines(JSON.stringify(line))}\n`);

/**
 * Resolves with the result of `load`. If `json` is set, a configuration error is printed as JSON and the result is
 * `undefined`.
 */
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
