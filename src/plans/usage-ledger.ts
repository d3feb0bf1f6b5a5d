import type { Mode } from './continuation.ts';
import type { Usage } from './delta.ts';
import { estimatedMessageTokens, tokensOfDeltas } from './tokens.ts';

/** What one attempt contributed, for the sum over attempts. */
export interface AttemptUsage {
  /** Who was asked; unknown of attempts that another replica made. */
  readonly upstream?: string;
  readonly mode: 'first' | Mode;
  /** What the provider said, if it came to that. */
  readonly reported?: Usage;
  /** Deltas that reached the client. */
  readonly text: Count;
  readonly reasoning: Count;
  readonly tools: Count;
  /** Deltas that the client had seen already: echoes, repetitions, regenerated reasoning. */
  readonly swallowed: Count;
  /** Characters of each message that the continuation added to the request. */
  readonly added_messages: readonly number[];
}

export interface Count {
  readonly deltas: number;
  readonly characters: number;
}

/** `request_characters`: the characters of each message of the client's request. */
export interface LedgerFacts {
  readonly request_characters: readonly number[];
}

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
 * Exact where the provider reported it or the deltas were tokens; estimated for the rest.
 */
export function logicalUsage(attempts: readonly AttemptUsage[], facts: LedgerFacts): Usage {
  const last = attempts.at(-1);
  const reported = last?.reported;
  // What is told in these modes is the whole answer, so their own report is that of the whole answer.
  if (reported && REPORTS_ALL.has(last.mode)) return reported;
  const prompt_tokens = promptTokens(attempts, facts);
  const completion_tokens = completionTokens(attempts);
  return { ...reported, prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}

function promptTokens(attempts: readonly AttemptUsage[], facts: LedgerFacts): number {
  const first = attempts.find((attempt) => attempt.reported && attempt.added_messages.length === 0);
  if (first?.reported) return first.reported.prompt_tokens;
  const estimate = facts.request_characters.reduce(
    (sum, characters) => sum + estimatedMessageTokens(characters),
    0,
  );
  const last = attempts.findLast((attempt) => attempt.reported);
  if (!last?.reported) return estimate;
  const ours = last.added_messages.reduce((sum, characters) => sum + estimatedMessageTokens(characters), 0);
  return Math.max(last.reported.prompt_tokens - ours, 0);
}

const completionTokens = (attempts: readonly AttemptUsage[]): number =>
  attempts.reduce((sum, attempt) => sum + newTokens(attempt), 0);

/** Tokens of the answer that it has from this attempt. */
function newTokens(attempt: AttemptUsage): number {
  const kept = keptTokens(attempt);
  if (!attempt.reported) return kept;
  const { completion_tokens } = attempt.reported;
  const rest = Math.max(completion_tokens - tokensIn(attempt.swallowed), 0);
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

/** Who did how much of a run, in the order in which they were asked first. */
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
