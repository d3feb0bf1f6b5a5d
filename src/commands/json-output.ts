import { ConfigurationError } from '../config/problem.ts';
import { printableLines } from './terminal.ts';

/** One document, for people as well: what a terminal would obey is escaped as JSON has it. */
export const printJson = (document: object): void =>
  void process.stdout.write(`${printableLines(JSON.stringify(document, undefined, 2))}\n`);

/** One line of many. */
export const printJsonLine = (line: object): void =>
  void process.stdout.write(`${printableLines(JSON.stringify(line))}\n`);

/** What `load` returns. Where the output is JSON, what is wrong with the configuration is printed as such: `undefined`. */
export function orProblems<Loaded>(json: boolean, load: () => Loaded): Loaded | undefined {
  try {
    return load();
  } catch (error) {
    if (!json || !(error instanceof ConfigurationError)) throw error;
    printJson({ ok: false, problems: error.problems });
    return undefined;
  }
}
