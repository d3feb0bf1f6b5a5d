import type { RecoveryPolicy } from '../config/configuration.ts';
import { type Interruption, isPermanent } from '../interrupts/interruption.ts';
import type { Exhaustion } from './budget.ts';
import { proofOf, type ToolCall, type ToolSchemas } from './tool-call.ts';
import type { Transcript } from './transcript.ts';

/** What to do about an interruption. `cancel` lists the calls that were cut and must be given up. */
export type Plan =
  | { readonly kind: 'R1' }
  | { readonly kind: 'R2'; readonly settle: readonly ToolCall[]; readonly cancel: readonly ToolCall[] }
  /** `repeats`: the client has seen the calls that were cut, so that the same answer is asked for again and continued in them. */
  | { readonly kind: 'R3'; readonly cancel: readonly ToolCall[]; readonly repeats?: true }
  | { readonly kind: 'R4'; readonly cancel: readonly ToolCall[] }
  /** Nothing is left to ask for: the answer is as long as it may be. */
  | { readonly kind: 'finish'; readonly reason: 'length' }
  | { readonly kind: 'give_up'; readonly why: GiveUp };

/**
 * Why a run that was taken over gets no further attempt. `poisoned`: replica after replica was lost with it.
 * `request_unknown`: its request was not stored, and no client has sent it again.
 */
export type Bar = 'poisoned' | 'request_unknown';

export const isBar = (why: GiveUp): why is Bar => why === 'poisoned' || why === 'request_unknown';

/**
 * Why a run is given up. `tool_running`: the provider ran a tool whose result is not known. `tools_not_carried`: no
 * target takes back what its tools have done, so that to ask for the rest would be to run them again. `context_full`: no
 * target has room for the rest.
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
  /** Where the context has no room for the rest, the client acts on an error, and not on an answer that ends at a limit. */
  readonly failsWhenFull?: boolean;
  /** The client sees calls as they come, and nothing tells it that one was cut. */
  readonly isLive?: boolean;
}

export interface Allowance {
  readonly exhausted: Exhaustion | Bar | undefined;
  /** The client has seen some of the answer. */
  readonly delivered: boolean;
  /** `max_tokens` less what was delivered; infinite without a limit. */
  readonly tokens_left: number;
  /** Another target may take what this one has refused for good. */
  readonly elsewhere?: boolean;
  /** What is too long for all targets can be put in fewer words. */
  readonly compressible?: boolean;
  /** The provider still has the answer, and continues it where it was cut. */
  readonly resumable?: boolean;
  /** A target that may be asked takes back what the tools of the provider have done. */
  readonly carries?: boolean;
}

/**
 * Chooses the plan. Pure and exhaustive.
 *
 * Settled tool calls come first, before every reason to stop: whatever else went wrong, they are delivered. Unless the
 * answer itself can be come back to: then nothing of it is lost, and nothing has to be made again.
 *
 * A tool that the provider has run is worth keeping like text: an answer with one is never begun anew.
 *
 * A call that the client has seen begin must not stay as it was cut: nothing ends well before that call is whole.
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

/** In an answer that is made again, the tools of the provider would run again. */
function repeated(hasRunTools: boolean, { plans }: Policy): Plan {
  if (hasRunTools) return { kind: 'give_up', why: 'tools_not_carried' };
  if (!plans.includes('R3')) return { kind: 'give_up', why: 'plan_not_allowed' };
  return { kind: 'R3', cancel: [], repeats: true };
}
