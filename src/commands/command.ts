/** Where a word can be completed from. */
export type WordSource = 'file' | 'nothing' | readonly string[];

/** `command`: the words of a command's name, each in its turn. */
export type OperandSource = WordSource | 'command';

/** One `--name`. */
export interface OptionDescription {
  readonly name: string;
  /** What its value is called; a switch has none. */
  readonly value?: string;
  /** It may be given more than once. */
  readonly many?: true;
  readonly says: string;
  /** What its value may be; by default something that only the operator knows. */
  readonly completes?: WordSource;
}

/** A word without a dash. */
interface OperandDescription {
  readonly name: string;
  readonly required: boolean;
  readonly many?: true;
  /** Said when it is missing. */
  readonly missing?: string;
  readonly completes?: OperandSource;
}

/** What was given on the command line. */
export interface Invocation {
  readonly operands: readonly string[];
  readonly values: Readonly<Record<string, string | undefined>>;
  /** Of options that may be given more than once, in order. */
  readonly lists: Readonly<Record<string, readonly string[] | undefined>>;
  readonly switches: ReadonlySet<string>;
}

/** Resolves with the exit status, which is 0 without one. */
type RunCommand = (invocation: Invocation) => Promise<number | undefined> | Promise<void>;

/** One command, as help, completions, the parser and docs/cli.md know it. */
export interface CommandDescription {
  /** `runs list` */
  readonly name: string;
  readonly operand?: OperandDescription;
  /** One line, in lower case. */
  readonly says: string;
  /** Paragraphs of Markdown for the documentation. */
  readonly details: readonly string[];
  readonly options: readonly OptionDescription[];
  /** Loaded late: a command needs what the others do not. */
  load(): Promise<{ readonly run: RunCommand }>;
}

/** The command line is not one of ours, or cannot be carried out as it was given. Exit status 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The command was understood and did not succeed. Exit status 1. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
}
