import type { Fields } from '../../../lib/json-body.ts';
import { promptSize } from '../common/prompt-size.ts';
import {
  type Continuation,
  type ContinuationFacts,
  checkModel,
  checkStop,
  checkStreamOptions,
  constraintsOf,
  type RequestFacts,
} from '../common/request.ts';
import type { WireRequest } from '../common/wire.ts';

/** The parts of a completion request that decide how a run may be continued. */
export interface CompletionRequest extends WireRequest {
  /** A list is of several prompts, or of the tokens of one. */
  readonly prompt?: unknown;
  readonly suffix?: string | null;
  readonly echo?: boolean | null;
  readonly best_of?: number | null;
  readonly n?: number | null;
  readonly logprobs?: number | null;
  readonly max_tokens?: number | null;
  readonly stop?: string | readonly string[] | null;
  readonly stream_options?: { readonly include_usage?: boolean; readonly [option: string]: unknown } | null;
  readonly response_format?: { readonly type: string; readonly [detail: string]: unknown } | null;
}

/** What a run relies on; everything else is left to the provider to judge. */
export function checkCompletionRequest(fields: Fields): CompletionRequest {
  checkModel(fields);
  checkStreamOptions(fields);
  checkStop(fields);
  return fields as unknown as CompletionRequest;
}

/** Fields are looked at with care: what is wrong with them is for the provider to say. */
export function completionFactsOf(request: CompletionRequest): RequestFacts {
  const { prompt, suffix, echo, best_of, logprobs, max_tokens, stop, stream_options } = request;
  const choices = promptsOf(prompt) * (typeof request.n === 'number' ? request.n : 1);
  const isAlone = choices === 1 && (best_of ?? 1) === 1;
  const hasText = typeof prompt === 'string' && !suffix && !echo;
  const { expectsJson, isGuided } = constraintsOf(request);
  return {
    schemas: new Map(),
    hasTools: false,
    choices,
    spliceable: isAlone && hasText && (logprobs ?? undefined) === undefined,
    onlyReplay: isGuided,
    expectsJson,
    stops: [stop].flat().filter((sequence) => typeof sequence === 'string'),
    max_tokens: typeof max_tokens === 'number' ? max_tokens : Infinity,
    usageAsked: stream_options?.include_usage === true,
    legacyFunctions: false,
    promptSize: () => promptSize([prompt]),
  };
}

/** The prompt with the answer so far at its end: continuing that is the purpose of the wire. */
export function completionContinuationOf({
  request,
  mode,
  prefix,
  tokens_left,
}: ContinuationFacts<CompletionRequest>): Continuation<CompletionRequest> {
  if (mode !== 'prefill') return { body: request, added_messages: [] };
  return {
    body: {
      ...request,
      ...(typeof request.max_tokens === 'number' && { max_tokens: Math.max(1, tokens_left) }),
      prompt: `${request.prompt}${prefix.sent}`,
      echo: false,
    },
    added_messages: [prefix.sent.length],
  };
}

/** A list of tokens is one prompt, a list of texts or of lists of tokens is as many. */
function promptsOf(prompt: unknown): number {
  return Array.isArray(prompt) && prompt.length > 0 && typeof prompt[0] !== 'number' ? prompt.length : 1;
}
