import {
  type AttemptUsage,
  charactersIn,
  estimatedMessageTokens,
  estimatedPromptTokens,
  estimatedTokens,
  filledUp,
  type PromptSize,
  sumOf,
  TOKENS_PER_MESSAGE,
  tokenCounter,
} from './tokens.ts';

/** How well the words of a nudge are counted, and what a template puts around them. */
const NUDGE_ERROR = 0.1;
const TURN_ERROR_TOKENS = 2;
/** How far texts of one request differ in characters per token: prose, code, JSON. */
const DENSITY_ERROR = 0.15;
/** The estimate by characters is right for this provider if it comes as close to the whole report. */
const AGREEMENT = 0.01;
/** Characters per token of English, in which nudges are worded, whatever the answer is written in. */
const NUDGE_DENSITY = { min: 2.5, max: 6.5 } as const;
/**
 * Tokens of the client's own request. An attempt that asked for just that reported them. The report of a continuation has
 * more: what was added is taken off. Without a report they are estimated. Never 0, and never more than was reported.
 */
export function promptTokens(attempts: readonly AttemptUsage[], size: PromptSize): number {
  const reports = attempts.map(reportedPrompt);
  const exact = attempts.findIndex((attempt, index) => isBare(attempt) && reports[index] !== undefined);
  if (exact >= 0) return reports[exact] as number;
  const estimate = Math.max(1, estimatedPromptTokens(size));
  // The earliest continuation has the least added to it.
  const first = reports.findIndex((report) => report !== undefined);
  const report = reports[first];
  const attempt = attempts[first];
  if (report === undefined || !attempt) return estimate;
  const own = withoutAdded(report, estimate, attempt, attempts.slice(0, first));
  return Math.min(Math.max(1, Math.round(own)), report);
}

/** Some servers report a prompt of no tokens, which none is. */
function reportedPrompt({ reported }: AttemptUsage): number | undefined {
  return reported && reported.prompt_tokens > 0 ? reported.prompt_tokens : undefined;
}

const isBare = ({ added_messages, added_reasoning = 0 }: AttemptUsage): boolean =>
  added_messages.length === 0 && added_reasoning === 0;

/**
 * Of the two ways to tell the request from what was added to it, the one with the smaller error. Text that was sent back
 * was counted when it came, and continues in the same turn: to subtract it is exact. To subtract a nudge is off by a few
 * tokens, however large the request is. To share the report out by characters is off by a part of the smaller side.
 */
function withoutAdded(
  report: number,
  estimate: number,
  attempt: AttemptUsage,
  before: readonly AttemptUsage[],
): number {
  const { added_messages, added_reasoning = 0 } = attempt;
  const [prefix = 0, ...nudges] = added_messages;
  const added_estimate =
    added_messages.reduce((sum, characters) => sum + estimatedMessageTokens(characters), 0) +
    estimatedTokens(added_reasoning);
  const share = (report * estimate) / (estimate + added_estimate);
  if (Math.abs(report - estimate - added_estimate) <= AGREEMENT * report) return share;

  const usual = report / charactersIn(estimate + added_estimate);
  const count = tokenCounter([...before, attempt], usual);
  const said = sumOf(before.map(({ text }) => text));
  const thought = sumOf(before.map(({ reasoning }) => reasoning));
  const nudge_characters = nudges.reduce((sum, characters) => sum + characters, 0);
  const said_tokens = count(said);
  const { characters, tokens } = filledUp({ tokens: said_tokens, characters: said.characters }, usual);
  const density = characters / tokens;
  const nudge_tokens = nudge_characters / Math.min(Math.max(density, NUDGE_DENSITY.min), NUDGE_DENSITY.max);
  const turns = nudges.length > 0 ? added_messages.length : 0;
  const added =
    partOf(said_tokens, prefix / said.characters) +
    partOf(count(thought), added_reasoning / thought.characters) +
    nudge_tokens +
    turns * TOKENS_PER_MESSAGE;
  const added_error = turns * TURN_ERROR_TOKENS + NUDGE_ERROR * nudge_tokens;
  const share_error = DENSITY_ERROR * share * (1 - share / report);
  return added < report && added_error <= share_error ? report - added : share;
}

/** What was trimmed off the end of it was not sent back. */
const partOf = (tokens: number, part: number): number => tokens * Math.min(1, part || 0);
