import type { RecoveryPolicy } from '../config/configuration.ts';
import { type Interruption, isPermanent } from '../interrupts/interruption.ts';
import type { Exhaustion } from './budget.ts';
import { proofOf, type ToolCall, type ToolSchemas } from './tool-call.ts';
import type { Transcript } from './transcript.ts';

/** How to handle an interruption. `cancel` lists the cut calls to give up. */
export type Plan =
  | { readonly kind: 'R1' }
  | { readonly kind: 'R2'; readonly settle: readonly ToolCall[]; readonly cancel: readonly ToolCall[] }
  /** `repeats`: the client has seen the cut calls, so the same answer is generated again and continued within them. */
  | { readonly kind: 'R3'; readonly cancel: readonly ToolCall[]; readonly repeats?: true }
  | { readonly kind: 'R4'; readonly cancel: readonly ToolCall[] }
  /** The answer has reached its maximum length. */
  | { readonly kind: 'finish'; readonly reason: 'length' }
  | { readonly kind: 'give_up'; readonly why: GiveUp };

/**
 * Why a run that was taken over gets no further attempt. `poisoned`: several replicas in a row were lost with it.
 * `request_unknown`: its request was not stored, and no client has sent it again.
 */
export type Bar = 'poisoned' | 'request_unknown';

export const isBar = (why: GiveUp): why is Bar => why === 'poisoned' || why === 'request_unknown';

/**
 * Why a run is given up. `tool_running`: the result of a tool that the provider ran is unknown. `tools_not_carried`: no
 * target accepts tool results back, so continuing would run the tools again. `context_full`: no target has room for the
 * rest.
 */
export type GiveUp =
  | 'permanent'
  | 'not_recoverable'
  | 'plan_not_allowed'
  | 'no_way_left'
  | 'tool_running'
  | 'tools_not_carried'
  | 'context_full'
  | Exhaustion
  | Bar;

export interface Policy extends Pick<RecoveryPolicy, 'plans' | 'tool_proof'> {
  readonly schemas: ToolSchemas;
  /** False for requests whose output cannot be joined across attempts: `n > 1`, `logprobs`, audio. */
  readonly spliceable: boolean;
  /** The client handles a full context better as an error than as an answer that ends at a limit. */
  readonly failsWhenFull?: boolean;
  /** The client sees calls as they arrive, and can't learn that one was cut. */
  readonly isLive?: boolean;
}

export interface Allowance {
  readonly exhausted: Exhaustion | Bar | undefined;
  /** The client has seen part of the answer. */
  readonly delivered: boolean;
  /** `max_tokens` less what was delivered; infinite without a limit. */
  readonly tokens_left: number;
  /** Another target may accept a request that this one refused permanently. */
  readonly elsewhere?: boolean;
  /** A prompt that is too long for every target can be compressed. */
  readonly compressible?: boolean;
  /** The provider still has the answer and can continue the stream where it was cut. */
  readonly resumable?: boolean;
  /** At least one candidate target accepts the results of provider tools. */
  readonly carries?: boolean;
}

/**
 * Chooses the plan. Pure and exhaustive.
 *
 * Settled tool calls take precedence over every reason to stop, so they are always delivered. The exception is a stream
 * that can be resumed: nothing is lost then.
 *
 * A completed provider tool is worth keeping like text: an answer with one is never restarted.
 *
 * A call that the client has seen begin must not stay cut: no plan ends the answer before that call is complete.
 */
export function decide(
  transcript: Transcript,
  interruption: Interruption,
  policy: Policy,
  allowance: Allowance,
): Plan {
  const open = transcript.openCalls;
  const settle = open.filter((call) => (proofOf(call, policy.schemas) ?? 0) >= policy.tool_proof);
  const cancel = open.filter((call) => !settle.includes(call));
  const spliceable = policy.spliceable && transcript.refusal === '';

  const tools = transcript.providerTools;
  const isWorthKeeping = transcript.hasText || tools.length > 0;

  const isTooLong = interruption.cause === 'context_overflow';
  const mayFit = allowance.elsewhere || (isTooLong && allowance.compressible);
  const isFinal = isPermanent(interruption.cause) && !mayFit;
  const mayResume = allowance.resumable && !isFinal && !allowance.exhausted;
  if (mayResume && policy.plans.includes('R1')) return { kind: 'R1' };
  const isBroken = policy.isLive === true && cancel.length > 0;
  if (!isBroken && (settle.length > 0 || transcript.closedCalls.length > 0))
    return { kind: 'R2', settle, cancel };
  if (tools.some(({ state }) => state === 'running')) return { kind: 'give_up', why: 'tool_running' };
  if (isFinal && isTooLong && isWorthKeeping && !isBroken) {
    return policy.failsWhenFull
      ? { kind: 'give_up', why: 'context_full' }
      : { kind: 'finish', reason: 'length' };
  }
  if (isFinal) return { kind: 'give_up', why: 'permanent' };
  if (!spliceable && allowance.delivered) return { kind: 'give_up', why: 'not_recoverable' };
  if (allowance.exhausted) return { kind: 'give_up', why: allowance.exhausted };
  if (isBroken) return repeated(tools.length > 0, policy);
  if (isWorthKeeping && allowance.tokens_left <= 0) return { kind: 'finish', reason: 'length' };
  if (tools.length > 0 && !allowance.carries) return { kind: 'give_up', why: 'tools_not_carried' };

  const plan: Plan = isWorthKeeping
    ? open.length > 0
      ? { kind: 'R3', cancel }
      : { kind: 'R1' }
    : { kind: 'R4', cancel };
  return policy.plans.includes(plan.kind) ? plan : { kind: 'give_up', why: 'plan_not_allowed' };
}

/** A repeated answer would run the provider's tools again. */
function repeated(hasRunTools: boolean, { plans }: Policy): Plan {
  if (hasRunTools) return { kind: 'give_up', why: 'tools_not_carried' };
  if (!plans.includes('R3')) return { kind: 'give_up', why: 'plan_not_allowed' };
  return { kind: 'R3', cancel: [], repeats: true };
}
