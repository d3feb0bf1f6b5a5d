import type { WireName } from '../checkpoint/journal.ts';
import type { FinalStatus } from '../checkpoint/store.ts';
import type { Plan } from '../plans/decide.ts';
import { MODES } from '../plans/seam/mode.ts';

/** The compiler ensures that none is missing. */
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
/** `reused`: the summary was one that is kept for the task. */
export const COMPRESSIONS = ['compressed', 'reused', 'not_shorter', 'failed'] as const;
/** Of requests to a second target: `denied` were over `hedge.max_share`, and not made. */
export const HEDGES = ['won', 'lost', 'failed', 'denied'] as const;
/** What the claim of a tool call is answered with. */
export const TOOL_CLAIMS = ['run', 'done', 'busy', 'unknown'] as const;
/** What a request that is a step of a task gets: `new` is asked of a provider, `attached` is under way already. */
export const STEPS = ['new', 'attached', 'continued', 'replayed', 'refused'] as const;
/** What a task is by what was said of it; `running`: a first request was answered, or it was resumed. */
export const TASKS = ['pending', 'running', 'paused', 'completed', 'cancelled'] as const;
/** Of an event at one endpoint; `refused`: its answer was final. */
export const WEBHOOKS = ['delivered', 'refused', 'dropped'] as const;
/** `unchanged`: what there is was in force already. */
export const RELOADS = ['applied', 'unchanged', 'refused'] as const;
export const RENEWALS = ['renewed', 'failed'] as const;
export const TOKENS = ['prompt', 'completion', 'repaid', 'saved'] as const;
export const ATTEMPTS = ['complete', 'interrupted'] as const;
/** Those that a breaker enters by an event; `half_open` comes by time alone. */
export const TRANSITIONS = ['open', 'closed'] as const;

type RecoveryPlan = Exclude<Plan['kind'], 'give_up'>;

export const RECOVERY_PLANS = valuesOf<RecoveryPlan>({
  R1: true,
  R2: true,
  R3: true,
  R4: true,
  finish: true,
});
/** `none`: nothing more was asked for. */
export const RECOVERY_MODES = [...MODES, 'none'] as const;
export const RECOVERY_OUTCOMES = ['succeeded', 'failed'] as const;

const MODES_OF_PLANS: Readonly<Record<RecoveryPlan, readonly (typeof RECOVERY_MODES)[number][]>> = {
  R1: ['resume', 'prefill', 'nudge', 'replay'],
  R2: ['none'],
  R3: ['nudge', 'prefill', 'replay'],
  R4: ['restart'],
  finish: ['none'],
};

/** The outcomes that recoveries can have: not every plan asks in every mode, and a plan that asks for nothing cannot fail. */
export const RECOVERIES = RECOVERY_PLANS.flatMap((plan) =>
  MODES_OF_PLANS[plan].flatMap((mode) =>
    RECOVERY_OUTCOMES.filter((outcome) => mode !== 'none' || outcome === 'succeeded').map((outcome) => ({
      plan,
      mode,
      outcome,
    })),
  ),
);
