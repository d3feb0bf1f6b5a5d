import type { Usage } from './delta.ts';
import { answerCounter, promptTokens } from './prompt-tokens.ts';
import { type AttemptUsage, type Count, type PromptSize, tokensOfDeltas } from './tokens.ts';

const REPORTS_ALL: ReadonlySet<AttemptUsage['mode']> = new Set(['first', 'resume', 'replay', 'restart']);

const tokensIn = (count: Count): number => tokensOfDeltas(count.deltas, count.characters);

const keptTokens = ({ text, reasoning, tools }: AttemptUsage): number =>
  tokensIn(text) + tokensIn(reasoning) + tokensIn(tools);

/**
 * Tokens of the answer so far that count against what is left of `max_tokens`. Reasoning does not: a model that
 * is nudged thinks anew, and would have nothing left to answer with.
 */
export function deliveredTokens(attempts: readonly AttemptUsage[]): number {
  return attempts.reduce((sum, attempt) => sum + tokensIn(attempt.text), 0);
}

/** Tokens that were generated but not new to the client: what recovery cost. */
export function repaidTokens(attempts: readonly AttemptUsage[]): number {
  return attempts.reduce((sum, attempt) => sum + tokensIn(attempt.swallowed), 0);
}

/**
 * The usage of the one logical answer that the client saw: its own prompt once, and every delivered token once.
 * Exact where the provider reported it or the deltas were tokens; estimated for the rest. `size`: of the client's request.
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

/** Tokens of the answer that it has from this attempt. */
function newTokens(attempt: AttemptUsage, count: (of: Count) => number): number {
  const { text, reasoning, tools, swallowed } = attempt;
  const kept = count(text) + count(reasoning) + count(tools);
  if (!attempt.reported) return kept;
  const { completion_tokens } = attempt.reported;
  const rest = Math.max(completion_tokens - count(swallowed), 0);
  // A server that sends the prefix again has not generated it, and most do not count it.
  const isUncounted = Math.abs(completion_tokens - kept) < Math.abs(rest - kept);
  return attempt.mode === 'prefill' && isUncounted ? completion_tokens : rest;
}

/** What the attempts at one upstream came to, as it reported them. */
export interface UpstreamUsage {
  readonly upstream: string;
  readonly attempts: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  /** Attempts without a report: they were broken off, and what was said in them is not in these numbers. */
  readonly unreported: number;
  /** Estimated: tokens of the answer that the client has from it. */
  readonly delivered_tokens: number;
}

/** The share of each upstream in a run, in the order in which they were asked first. */
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
