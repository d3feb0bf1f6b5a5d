/** One thing wrong with the configuration. */
export interface Problem {
  /** Dotted path of the key, such as `upstreams.openai.base_url`; empty for the whole document. */
  readonly path: string;
  /** What is wrong and how to fix it. Never includes a secret. */
  readonly message: string;
  /** Where the value came from: `holdfast.yaml:3:5`, `HOLDFAST_PORT` or `--port`. */
  readonly source?: string;
}

/** The configuration is unusable. The message lists every problem, one per line. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(problems.map(formatProblem).join('\n'));
    this.problems = problems;
  }
}

/** For example, `holdfast.yaml:3:5: listen.port: must be …`. */
export const formatProblem = ({ path, message, source }: Problem): string =>
  [source, path, message].filter((part) => part !== undefined && part !== '').join(': ');

/** With more than one typing error per this many characters, it is a different word. */
const CHARACTERS_PER_ERROR = 3;

/** ` Did you mean "idle_ms"?`, or an empty string if no candidate is close. */
export function suggestion(word: string, candidates: Iterable<string>): string {
  let nearest: string | undefined;
  let nearestDistance = Math.ceil(word.length / CHARACTERS_PER_ERROR) + 1;
  for (const candidate of candidates) {
    const distance = candidate.startsWith(`${word}_`) ? 1 : editDistance(word, candidate);
    if (distance < nearestDistance) [nearest, nearestDistance] = [candidate, distance];
  }
  return nearest === undefined ? '' : ` Did you mean "${nearest}"?`;
}

/** Levenshtein distance. */
function editDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, column) => column);
  for (const [row, character] of [...left].entries()) {
    const current = [row + 1];
    for (let column = 1; column <= right.length; column++) {
      const substitution = (previous[column - 1] ?? 0) + (character === right[column - 1] ? 0 : 1);
      current.push(Math.min(substitution, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[right.length] ?? 0;
}
