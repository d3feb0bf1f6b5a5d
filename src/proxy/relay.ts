import type { FinalStatus } from '../checkpoint/store.ts';
import { classify } from '../interrupts/classify.ts';
import { type Interruption, isPermanent } from '../interrupts/interruption.ts';
import { backoffMs, charge, exhaustion, newBudget } from '../plans/budget.ts';
import { decide, type GiveUp, type Plan } from '../plans/decide.ts';
import { sleep } from '../time.ts';
import { Attempt } from './attempt.ts';
import { failureEvent, failureResponse } from './failure.ts';
import { responseHeaders } from './headers.ts';
import { Reading } from './reading.ts';
import { type PlannedAttempt, RecoveryRequests } from './recovery-request.ts';
import type { Client, Outcome, Run, RunContext } from './run.ts';
import { Turn } from './turn.ts';

/**
 * Delivers one run: opens an attempt and shows the client what it says; when it ends, either the answer is whole,
 * or the interruption is classified, a plan decided on, the next request built, and round it goes.
 *
 * What is said by whom is kept apart: `reading` is one attempt, `turn` is the run, and `requests` knows how the rest
 * is asked for. The decisions themselves are pure functions in `interrupts/` and `plans/`.
 */
export async function relay(run: Run, client: Client, context: RunContext): Promise<Outcome> {
  const { configuration, time } = context;
  const limits = configuration.recovery;
  const turn = new Turn(run, client, context);
  const requests = new RecoveryRequests(run, context, turn.facts);
  const log = context.log.child({ run: run.id, upstream: run.target.name });
  let budget = newBudget(time.now());
  let planned = requests.original();
  let plan: Plan | undefined;
  /** The provider's own failure; what came of asking for the rest must not mask it. */
  let failure: Interruption | undefined;

  for (;;) {
    const attempt = openAttempt(planned, turn, context);
    const reading = new Reading(turn, planned, attempt, context);
    await reading.run();
    if (turn.signal.aborted) return close(turn, 'cancelled', 'cancelled');

    if (reading.added > 0) requests.confirm(planned);
    if (reading.ending) {
      count(planned, plan, reading, undefined, run, context);
      await turn.finish(reading.ending);
      return close(turn, 'complete', turn.attempts > 1 ? 'recovered' : 'complete');
    }

    const interruption = classify(reading.end, reading.phase);
    count(planned, plan, reading, interruption, run, context);
    const isOurs = requests.blames(planned, interruption);
    if (!isOurs && !(failure && isPermanent(interruption.cause))) failure = interruption;
    const now_ms = time.now();
    budget = charge(budget, limits, {
      interruption,
      offset: turn.transcript.size,
      added: reading.added,
      now_ms,
    });
    plan = decide(turn.transcript, isOurs && failure ? failure : interruption, turn.policy, {
      exhausted: exhaustion(budget, limits, now_ms),
      delivered: turn.delivery.begun,
      tokens_left: turn.tokens_left,
    });
    // Not the provider's own words: it may quote the prompt, or the key.
    const { message: _, ...observed } = interruption;
    log.warn({ ...observed, attempt: turn.attempts, mode: planned.mode, plan: plan.kind }, 'interrupted');

    switch (plan.kind) {
      case 'R2':
        await settle(turn, plan, interruption);
        return close(turn, 'complete', 'salvaged');
      case 'finish':
        turn.cancel(turn.transcript.openCalls, interruption.cause);
        await turn.finish({ reason: plan.reason, after: [] });
        return close(turn, 'complete', 'recovered');
      case 'give_up':
        return giveUp(turn, client, attempt, { interruption: failure ?? interruption, why: plan.why });
    }

    if (plan.kind !== 'R1') turn.cancel(plan.cancel, interruption.cause);
    const next = requests.recovery(plan, turn.transcript, turn.tokens_left);
    if (!next)
      return giveUp(turn, client, attempt, { interruption: failure ?? interruption, why: 'no_way_left' });
    if (next.mode === 'restart') turn.announceReset(interruption.cause);
    turn.beginRecovery(plan.kind, interruption.cause);
    await turn.flush();
    planned = next;
    const wait_ms = isOurs ? 0 : backoffMs(budget, limits, interruption.retry_after_ms, context.random());
    await sleep(time, wait_ms, turn.signal);
    if (turn.signal.aborted) return close(turn, 'cancelled', 'cancelled');
  }
}

function openAttempt(
  { request }: PlannedAttempt,
  turn: Turn,
  { configuration, transport, time }: RunContext,
): Attempt {
  const clocks = { ...configuration.clocks, ...turn.run.target.upstream.clocks };
  const { event_bytes } = configuration.limits;
  return new Attempt(transport, request, { clocks, event_bytes }, time, turn.signal);
}

/** R2: the calls that are proven closed are the answer; the others were cut. */
async function settle(
  turn: Turn,
  { settle, cancel }: Extract<Plan, { kind: 'R2' }>,
  { cause }: Interruption,
): Promise<void> {
  turn.settle(settle);
  turn.cancel(cancel, cause);
  await turn.finish({ reason: turn.facts.legacyFunctions ? 'function_call' : 'tool_calls', after: [] });
}

async function giveUp(
  turn: Turn,
  client: Client,
  { refusal }: Attempt,
  reason: { readonly interruption: Interruption; readonly why: GiveUp },
): Promise<Outcome> {
  const failure = { ...reason, attempts: turn.attempts };
  if (client.opened) {
    await turn.fail(failureEvent(turn.run, turn.transcript, failure));
    return close(turn, 'failed', 'failed');
  }
  if (refusal && refusal.status >= 400) {
    // What the provider says to its client is for the client, word for word.
    client.reject(refusal.status, responseHeaders(refusal.headers), refusal.body);
  } else {
    const { status, body } = failureResponse(turn.run, failure);
    client.reject(status, { 'content-type': 'application/json; charset=utf-8' }, body);
  }
  return close(turn, 'failed', 'rejected');
}

async function close(turn: Turn, status: FinalStatus, outcome: Outcome): Promise<Outcome> {
  await turn.close(status);
  return outcome;
}

/** Counts how an attempt ended, and whether the plan that led to it worked. */
function count(
  { mode, splice }: PlannedAttempt,
  plan: Plan | undefined,
  reading: Reading,
  interruption: Interruption | undefined,
  run: Run,
  { metrics }: RunContext,
): void {
  const upstream = run.target.name;
  metrics.attempts.inc({ upstream, outcome: interruption ? 'interrupted' : 'complete' });
  if (interruption)
    metrics.interruptions.inc({ cause: interruption.cause, phase: interruption.phase, upstream });
  if (splice?.isOpen) metrics.seams.inc({ kind: splice.seam });
  if (plan) {
    const outcome = reading.ending || reading.added > 0 ? 'succeeded' : 'failed';
    metrics.recoveries.inc({ plan: plan.kind, mode, outcome });
  }
}
