import { classify } from '../interrupts/classify.ts';
import type { Interruption } from '../interrupts/interruption.ts';
import { charge, exhaustion, newBudget } from '../plans/budget.ts';
import { decide, type Plan } from '../plans/decide.ts';
import type { ToolCall } from '../plans/transcript.ts';
import { sleep } from '../time.ts';
import { leaveAnswerId } from './answer-ids.ts';
import { Attempt } from './attempt.ts';
import type { AttemptReport } from './attempt-report.ts';
import { leaveLostCalls } from './notices/left-notes.ts';
import { notMadeAgain } from './notices/lost-calls.ts';
import { Reading } from './reading.ts';
import type { PlannedAttempt } from './recovery-request.ts';
import type { Client, Outcome, Resumption, Run, RunContext } from './run.ts';
import { abandon, close, giveUp } from './run-end.ts';
import { RunRequests } from './targets/run-requests.ts';
import { RunTargets } from './targets/run-targets.ts';
import { Turn } from './turn.ts';

/**
 * Delivers one run: opens an attempt and shows the client what it says; when it ends, either the answer is whole,
 * or the interruption is classified, a plan decided on, the next request built, and round it goes.
 *
 * What is said by whom is kept apart: `report` is one attempt, `turn` is the run, `targets` knows who is asked, and
 * `requests` how. The decisions themselves are pure functions in `interrupts/` and `plans/`.
 *
 * A run that another replica began (`resumption`) goes the same way: what was delivered of it is an attempt that was
 * interrupted by the loss of its replica.
 */
export async function relay(
  run: Run,
  client: Client,
  context: RunContext,
  resumption?: Resumption,
): Promise<Outcome> {
  const targets = new RunTargets(run, context);
  const target = resumption ? targets.resume(run.target) : targets.begin();
  const turn = new Turn(run.targets ? { ...run, target } : run, client, context, resumption);
  try {
    return await deliver(turn, targets, client, context, resumption);
  } catch (error) {
    // While this replica lives, nobody takes from it what it holds.
    await turn.release();
    throw error;
  } finally {
    targets.release();
  }
}

async function deliver(
  turn: Turn,
  targets: RunTargets,
  client: Client,
  context: RunContext,
  resumption?: Resumption,
): Promise<Outcome> {
  const { configuration, time } = context;
  const limits = configuration.recovery;
  const { run } = turn;
  const requests = new RunRequests(run, context, turn.facts);
  const log = context.log.child({ run: run.id });
  let budget = newBudget(time.now());
  let planned = requests.original(targets.current);
  let plan: Plan | undefined;
  /** Calls that the client saw begin and saw cancelled, and that the model was asked to make again. */
  const cut: ToolCall[] = [];

  const { restored } = turn;
  if (restored?.ended) {
    turn.delivery.end();
    if (restored.ended === 'error') return close(turn, client, { status: 'failed' }, 'failed');
    return close(turn, client, { status: 'complete' }, 'replayed');
  }
  let report: AttemptReport = restored?.report ?? (await read(planned, turn, targets, context));
  for (;;) {
    if (turn.signal.aborted) return abandon(turn, client);
    requests.hear(planned, report);
    if (report.added > 0) requests.confirm(planned);
    if (report.ending) {
      targets.answered();
      count(planned, plan, report, undefined, context);
      await leaveLostCalls(turn, notMadeAgain(cut, turn.transcript.closedCalls), context);
      await leaveAnswerId(turn, report.answer_id, context);
      await turn.finish(report.ending);
      return close(turn, client, { status: 'complete' }, turn.attempts > 1 ? 'recovered' : 'complete');
    }

    const interruption = classify(report.end, report.phase);
    count(planned, plan, report, interruption, context);
    const isOurs = requests.blames(planned, interruption);
    const { size: offset } = turn.transcript;
    const now_ms = time.now();
    const { left, ...moved } = targets.after({ interruption, report, isOurs, offset });
    budget = charge(budget, limits, { interruption, offset, added: report.added, now_ms, ...moved });
    const resumed = requests.resumption(planned, report);
    plan = decide(turn.transcript, isOurs ? targets.told.interruption : interruption, turn.policy, {
      exhausted: resumption?.barred ?? exhaustion(budget, limits, now_ms),
      delivered: turn.delivery.begun,
      tokens_left: turn.tokens_left,
      elsewhere: left.length > 0,
      resumable: resumed !== undefined,
    });
    // Not the provider's own words: it may quote the prompt, or the key.
    const { message: _, ...observed } = interruption;
    const { mode, target } = planned;
    log.warn(
      { ...observed, upstream: target.name, attempt: turn.attempts, mode, plan: plan.kind },
      'interrupted',
    );

    switch (plan.kind) {
      case 'R2':
        await settle(turn, plan, interruption, cut, context);
        return close(turn, client, { status: 'complete' }, 'salvaged');
      case 'finish':
        turn.cancel(turn.transcript.openCalls, interruption.cause);
        await turn.finish({ reason: plan.reason, after: [] });
        return close(turn, client, { status: 'complete' }, 'recovered');
      case 'give_up':
        return giveUp(turn, client, targets.told, plan.why, context);
    }

    if (plan.kind !== 'R1') turn.cancel(plan.cancel, interruption.cause);
    if (plan.kind === 'R3' && run.events !== 'none') cut.push(...plan.cancel);
    const next = resumed ?? requests.recovery(plan, turn.transcript, turn.tokens_left, left);
    if (!next) return giveUp(turn, client, targets.told, 'no_way_left', context);
    if (next.mode === 'restart') turn.announceReset(interruption.cause);
    turn.beginRecovery(plan.kind, interruption.cause);
    // Nothing is wrong with the target when the way of asking was at fault, or a replica that was lost.
    const atOnce = next.target === target && (isOurs || report.end.kind === 'replica_lost');
    const wait_ms = atOnce ? 0 : targets.wait_ms(next.target, budget, interruption);
    targets.ask(next.target);
    await turn.flush();
    planned = next;
    await sleep(time, wait_ms, turn.signal);
    if (turn.signal.aborted) return abandon(turn, client);
    report = await read(planned, turn, targets, context);
  }
}

/** Makes one attempt. */
async function read(
  planned: PlannedAttempt,
  turn: Turn,
  targets: RunTargets,
  context: RunContext,
): Promise<Reading> {
  const { configuration, transport, time } = context;
  const clocks = { ...configuration.clocks, ...planned.target.upstream.clocks };
  const { event_bytes } = configuration.limits;
  const attempt = new Attempt(transport, planned.request, { clocks, event_bytes }, time, turn.signal);
  const reading = new Reading(turn, planned, attempt, context, () => targets.answered());
  await reading.run();
  return reading;
}

/** R2: the calls that are proven closed are the answer; the others were cut, as those in `before` were earlier. */
async function settle(
  turn: Turn,
  { settle, cancel }: Extract<Plan, { kind: 'R2' }>,
  { cause }: Interruption,
  before: readonly ToolCall[],
  context: RunContext,
): Promise<void> {
  turn.settle(settle);
  turn.cancel(cancel, cause);
  // Settled work is stored before the client is told that the turn is over.
  await turn.persist();
  const lost = [...notMadeAgain(before, turn.transcript.closedCalls), ...cancel];
  await leaveLostCalls(turn, lost, context);
  await turn.finish({ reason: turn.facts.legacyFunctions ? 'function_call' : 'tool_calls', after: [] });
}

/** Counts how an attempt ended, and whether the plan that led to it worked. */
function count(
  { target, mode, splice }: PlannedAttempt,
  plan: Plan | undefined,
  report: AttemptReport,
  interruption: Interruption | undefined,
  { metrics }: RunContext,
): void {
  const upstream = target.name;
  metrics.attempts.inc({ upstream, outcome: interruption ? 'interrupted' : 'complete' });
  if (interruption)
    metrics.interruptions.inc({ cause: interruption.cause, phase: interruption.phase, upstream });
  if (splice?.isOpen) metrics.seams.inc({ kind: splice.seam });
  if (plan) {
    const outcome = report.ending || report.added > 0 ? 'succeeded' : 'failed';
    metrics.recoveries.inc({ plan: plan.kind, mode, outcome });
  }
}
