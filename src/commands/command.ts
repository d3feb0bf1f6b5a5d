/** The source of completions for a word. */
export type WordSource = 'file' | 'nothing' | readonly string[];

/** `command`: the words of a command's name, each in its turn. */
export type OperandSource = WordSource | 'command';

/** One `--name`. */
export interface OptionDescription {
  readonly name: string;
  /** The placeholder for its value; absent for a switch. */
  readonly value?: string;
  /** The option may be repeated. */
  readonly many?: true;
  readonly says: string;
  /** Completions for the value; by default none, because only the operator knows it. */
  readonly completes?: WordSource;
}

/** A word without dashes. */
interface OperandDescription {
  readonly name: string;
  readonly required: boolean;
  readonly many?: true;
  /** The error message if it is missing. */
  readonly missing?: string;
  readonly completes?: OperandSource;
}

/** The parsed command line. */
export interface Invocation {
  readonly operands: readonly string[];
  readonly values: Readonly<Record<string, string | undefined>>;
  /** Values of options that may be repeated, in order. */
  readonly lists: Readonly<Record<string, readonly string[] | undefined>>;
  readonly switches: ReadonlySet<string>;
}

/** Resolves with the exit status; `undefined` means 0. */
type RunCommand = (invocation: Invocation) => Promise<number | undefined> | Promise<void>;

/** One command, as used by the help, completions, parser and docs/cli.md. */
export interface CommandDescription {
  /** For example, `runs list`. */
  readonly name: string;
  readonly operand?: OperandDescription;
  /** One line in lower case. */
  readonly says: string;
  /** Markdown paragraphs for the documentation. */
  readonly details: readonly string[];
  readonly options: readonly OptionDescription[];
  /** Imported only when the command runs, because commands have different dependencies. */
  load(): Promise<{ readonly run: RunCommand }>;
}

/** The command line is invalid or can't be carried out as given. Exit status 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** A valid command failed. Exit status 1. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
}
