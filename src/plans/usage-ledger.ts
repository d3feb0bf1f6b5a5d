import type { Usage } from './delta.ts';
import {
  type AttemptUsage,
  type Count,
  charactersIn,
  estimatedMessageTokens,
  estimatedPromptTokens,
  estimatedTokens,
  filledUp,
  type PromptSize,
  sumOf,
  TOKENS_PER_MESSAGE,
  tokenCounter,
  tokensIn,
} from './tokens.ts';

const REPORTS_ALL: ReadonlySet<AttemptUsage['mode']> = new Set(['first', 'resume', 'replay', 'restart']);

const keptTokens = ({ text, reasoning, tools }: AttemptUsage): number =>
  tokensIn(text) + tokensIn(reasoning) + tokensIn(tools);

/**
 * The usage of the one logical answer that the client saw: its own prompt once, and every delivered token once. Exact
 * if the provider reported it or deltas were tokens; estimated otherwise. `size`: the client's request.
 */
export function logicalUsage(attempts: readonly AttemptUsage[], size: PromptSize): Usage {
  const last = attempts.at(-1);
  const reported = last?.reported;
  // These modes produce the whole answer, so their own report covers the whole answer.
  const whole = reported && REPORTS_ALL.has(last.mode) ? reported : undefined;
  if (whole && whole.prompt_tokens > 0) return whole;
  const prompt_tokens = promptTokens(attempts, size);
  const completion_tokens = whole?.completion_tokens ?? completionTokens(attempts, size);
  return { ...reported, prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}

function completionTokens(attempts: readonly AttemptUsage[], size: PromptSize): number {
  const count = answerCounter(attempts, size);
  return attempts.reduce((sum, attempt) => sum + newTokens(attempt, count), 0);
}

/** The answer's tokens that this attempt contributed. */
function newTokens(attempt: AttemptUsage, count: (of: Count) => number): number {
  const { text, reasoning, tools, swallowed } = attempt;
  const kept = count(text) + count(reasoning) + count(tools);
  if (!attempt.reported) return kept;
  const { completion_tokens } = attempt.reported;
  const rest = Math.max(completion_tokens - count(swallowed), 0);
  // A server that repeats the prefix has not generated it, and most servers don't count it.
  const isUncounted = Math.abs(completion_tokens - kept) < Math.abs(rest - kept);
  return attempt.mode === 'prefill' && isUncounted ? completion_tokens : rest;
}

/** Totals for the attempts at one upstream, as it reported them. */
interface UpstreamUsage {
  readonly upstream: string;
  readonly attempts: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  /** Interrupted attempts without a report, whose tokens the totals exclude. */
  readonly unreported: number;
  /** Estimated: tokens of the answer that this upstream delivered. */
  readonly delivered_tokens: number;
}

/** Each upstream's share of a run, in the order of their first attempts. */
export function usageByUpstream(attempts: readonly AttemptUsage[]): readonly UpstreamUsage[] {
  const byUpstream = Map.groupBy(attempts, ({ upstream }) => upstream);
  byUpstream.delete(undefined);
  return Array.from(byUpstream, ([upstream = '', asked]) => ({
    upstream,
    attempts: asked.length,
    prompt_tokens: asked.reduce((sum, { reported }) => sum + (reported?.prompt_tokens ?? 0), 0),
    completion_tokens: asked.reduce((sum, { reported }) => sum + (reported?.completion_tokens ?? 0), 0),
    unreported: asked.filter(({ reported }) => !reported).length,
    delivered_tokens: asked.reduce((sum, attempt) => sum + keptTokens(attempt), 0),
  }));
}

/** Relative error when counting a nudge, and the error per turn for the chat template. */
const NUDGE_ERROR = 0.1;
const TURN_ERROR_TOKENS = 2;
/** How much the texts of one request differ in characters per token: prose, code, JSON. */
const DENSITY_ERROR = 0.15;
/** If the estimate by characters is this close to the whole report, it is right for this provider. */
const AGREEMENT = 0.01;
/** Characters per token of English, the language of every nudge. */
const NUDGE_DENSITY = { min: 2.5, max: 6.5 } as const;

/**
 * Tokens of the client's own request. An attempt with just that request reported them. Otherwise the added parts are
 * subtracted from a continuation's report, or the tokens are estimated if there is no report. Never 0, and never more
 * than reported.
 */
export function promptTokens(attempts: readonly AttemptUsage[], size: PromptSize): number {
  const exact = attempts.find((attempt) => isBare(attempt) && reportedPrompt(attempt) !== undefined);
  if (exact) return reportedPrompt(exact) as number;
  const first = firstReport(attempts);
  if (!first) return estimateOf(size);
  return Math.min(Math.max(1, Math.round(withoutAdded(first, attempts, size))), first.report);
}

/**
 * How to count attempts without a report. The prompt and the answer must use the same counter, because their sum was
 * reported.
 */
function answerCounter(attempts: readonly AttemptUsage[], size: PromptSize): (count: Count) => number {
  const first = firstReport(attempts);
  return tokenCounter(attempts, first && usualDensity(first, size));
}

/** The report of the earliest continuation, which added the least. */
interface PromptReport {
  readonly report: number;
  readonly attempt: AttemptUsage;
  readonly before: readonly AttemptUsage[];
}

function firstReport(attempts: readonly AttemptUsage[]): PromptReport | undefined {
  const index = attempts.findIndex((attempt) => reportedPrompt(attempt) !== undefined);
  const attempt = attempts[index];
  if (!attempt) return undefined;
  return { report: reportedPrompt(attempt) as number, attempt, before: attempts.slice(0, index) };
}

const estimateOf = (size: PromptSize): number => Math.max(1, estimatedPromptTokens(size));

const addedEstimate = ({ added_messages, added_reasoning = 0 }: AttemptUsage): number =>
  added_messages.reduce((sum, characters) => sum + estimatedMessageTokens(characters), 0) +
  estimatedTokens(added_reasoning);

/** Tokens per character of the whole reported request. */
const usualDensity = ({ report, attempt }: PromptReport, size: PromptSize): number =>
  report / charactersIn(estimateOf(size) + addedEstimate(attempt));

/** Some servers report 0 prompt tokens, which is never true. */
function reportedPrompt({ reported }: AttemptUsage): number | undefined {
  return reported && reported.prompt_tokens > 0 ? reported.prompt_tokens : undefined;
}

const isBare = ({ added_messages, added_reasoning = 0 }: AttemptUsage): boolean =>
  added_messages.length === 0 && added_reasoning === 0;

/**
 * Separates the request from the added parts, by whichever of two methods has the smaller error. Subtraction is exact
 * for text sent back, which was counted on arrival and continues the same turn, and a few tokens off for a nudge,
 * however large the request. Apportioning by characters is off by a fraction of the smaller part.
 */
function withoutAdded(first: PromptReport, attempts: readonly AttemptUsage[], size: PromptSize): number {
  const { report, attempt, before } = first;
  const { added_messages, added_reasoning = 0 } = attempt;
  const [prefix = 0, ...nudges] = added_messages;
  const estimate = estimateOf(size);
  const added_estimate = addedEstimate(attempt);
  const share = (report * estimate) / (estimate + added_estimate);
  if (Math.abs(report - estimate - added_estimate) <= AGREEMENT * report) return share;

  const usual = usualDensity(first, size);
  const count = answerCounter(attempts, size);
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

/** Less than 1 if trailing characters were trimmed before the text was sent back. */
const partOf = (tokens: number, part: number): number => tokens * Math.min(1, part || 0);
