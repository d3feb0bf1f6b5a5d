import type { WireName } from '../checkpoint/journal.ts';
import type { FinalStatus } from '../checkpoint/store.ts';
import type { Plan } from '../plans/decide.ts';
import { MODES } from '../plans/seam/mode.ts';

/** Its type makes the compiler check that no value is missing. */
const valuesOf = <Value extends string>(values: Readonly<Record<Value, true>>): readonly Value[] =>
  Object.keys(values) as Value[];

export const WIRES = valuesOf<WireName>({
  chat_completions: true,
  completions: true,
  messages: true,
  responses: true,
});

export const SALVAGED = valuesOf<Exclude<FinalStatus, 'cancelled'>>({
  recovered_from_partial: true,
  timeout_partial: true,
  failed: true,
  complete: true,
});

export const TAKEOVERS = ['taken', 'refused', 'lost_race'] as const;
/** `reused`: a summary stored for the task was used. */
export const COMPRESSIONS = ['compressed', 'reused', 'not_shorter', 'failed'] as const;
/** Requests to a second target. `denied`: not made, because `hedge.max_share` was reached. */
export const HEDGES = ['won', 'lost', 'failed', 'denied'] as const;
/** Answers to the claim of a tool call. */
export const TOOL_CLAIMS = ['run', 'done', 'busy', 'unknown'] as const;
/** Handling of a request that is a task step. `new`: sent to a provider. `attached`: already in progress. */
export const STEPS = ['new', 'attached', 'continued', 'replayed', 'refused'] as const;
/** Task states set by explicit events. `running`: a first request was answered, or the task was resumed. */
export const TASKS = ['pending', 'running', 'paused', 'completed', 'cancelled'] as const;
/** Result of an event at one endpoint. `refused`: the endpoint's answer was final. */
export const WEBHOOKS = ['delivered', 'refused', 'dropped'] as const;
/** `unchanged`: the same configuration was already active. */
export const RELOADS = ['applied', 'unchanged', 'refused'] as const;
export const RENEWALS = ['renewed', 'failed'] as const;
export const TOKENS = ['prompt', 'completion', 'repaid', 'saved'] as const;
export const ATTEMPTS = ['complete', 'interrupted'] as const;
/** States that a breaker enters on an event. `half_open` is entered only by time. */
export const TRANSITIONS = ['open', 'closed'] as const;

type RecoveryPlan = Exclude<Plan['kind'], 'give_up'>;

export const RECOVERY_PLANS = valuesOf<RecoveryPlan>({
  R1: true,
  R2: true,
  R3: true,
  R4: true,
  finish: true,
});
/** `none`: no further request was needed. */
export const RECOVERY_MODES = [...MODES, 'none'] as const;
export const RECOVERY_OUTCOMES = ['succeeded', 'failed'] as const;

const MODES_OF_PLANS: Readonly<Record<RecoveryPlan, readonly (typeof RECOVERY_MODES)[number][]>> = {
  R1: ['resume', 'prefill', 'nudge', 'replay'],
  R2: ['none'],
  R3: ['nudge', 'prefill', 'replay'],
  R4: ['restart'],
  finish: ['none'],
};

/** The possible results of recoveries: not every plan uses every mode, and a plan without a request can't fail. */
export const RECOVERIES = RECOVERY_PLANS.flatMap((plan) =>
  MODES_OF_PLANS[plan].flatMap((mode) =>
    RECOVERY_OUTCOMES.filter((outcome) => mode !== 'none' || outcome === 'succeeded').map((outcome) => ({
      plan,
      mode,
      outcome,
    })),
  ),
);
