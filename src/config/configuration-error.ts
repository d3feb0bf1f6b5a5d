/** One thing wrong with the configuration. */
export interface Problem {
  /** Dotted path of the key, `upstreams.openai.base_url`; empty for the document as a whole. */
  readonly path: string;
  /** What is wrong and what to do about it. Never holds a secret. */
  readonly message: string;
  /** Where the value came from: `holdfast.yaml:3:5`, `HOLDFAST_PORT` or `--port`. */
  readonly source?: string;
}

/** The configuration cannot be used; its message lists every problem, one a line. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(problems.map(formatProblem).join('\n'));
    this.problems = problems;
  }
}

const formatProblem = ({ path, message, source }: Problem): string =>
  [source, path, message].filter((part) => part !== undefined && part !== '').join(': ');
