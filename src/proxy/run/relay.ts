import { classify } from '../../interrupts/classify.ts';
import { withoutMessage } from '../../interrupts/interruption.ts';
import { sleep } from '../../lib/time.ts';
import type { GiveUp, Plan } from '../../plans/decide.ts';
import type { Outcome } from '../../plans/outcome.ts';
import { cachedTokens } from '../../plans/tokens.ts';
import type { ToolCall } from '../../plans/tool-call.ts';
import type { Client } from '../downstream/client.ts';
import { leaveAnswerId } from './answer-ids.ts';
import { AttemptReader, newAttempt } from './attempt-reader.ts';
import { compressedAhead, isTooLarge } from './compression/compressed-ahead.ts';
import type { AttemptReport, PlannedAttempt } from './context/attempt.ts';
import type { Resumption, Run } from './context/run.ts';
import type { RunContext } from './context/run-context.ts';
import { beginObservation } from './context/run-observer.ts';
import { abandon, close, finishWithToolCalls, giveUp } from './end.ts';
import { type Hedge, Hedging } from './hedge.ts';
import { modelOf } from './next-attempt/asked-conversation.ts';
import { AttemptPlanner, type FirstAttempt, firstAttempt } from './next-attempt/planner.ts';
import { answerWithoutStream } from './non-streaming-fallback.ts';
import { notMadeAgain } from './notices/lost-calls.ts';
import { leaveLostCalls } from './notices/record-notices.ts';
import { RunState } from './run-state.ts';
import { type ReportedFailure, RunTargets } from './targets/run-targets.ts';
import { conversationOf } from './targets/targets-of-run.ts';

/**
 * Delivers one run: makes an attempt and shows its output to the client. When the attempt ends, either the answer is
 * complete, or the interruption is classified, the planner chooses a plan, and the loop makes the next attempt.
 *
 * Each object owns one kind of fact: `report` one attempt, `state` the run, `targets` the choice of target, `planner`
 * the way to request the rest, `hedging` the output of a second target. The decisions themselves are pure functions in
 * `interrupts/` and `plans/`. docs/life-of-a-run.md has the diagram.
 *
 * A run from another replica (`resumption`) takes the same path: that replica's output counts as an attempt interrupted
 * by the loss of the replica.
 */
export async function relay(
  run: Run,
  client: Client,
  unwatched: RunContext,
  resumption?: Resumption,
): Promise<Outcome> {
  const { watch, context, show } = beginObservation(run, unwatched, resumption);
  const choice = run.targets && new RunTargets(run.id, run.targets, context);
  let state: RunState | undefined;
  let planner: AttemptPlanner | undefined;
  let hedging: Hedging | undefined;
  try {
    const target = (resumption ? choice?.resume(run.target) : choice?.begin()) ?? run.target;
    const begun = new RunState(choice ? { ...run, target } : run, client, context, watch, resumption);
    state = begun;
    show(begun.transcript);
    const needsSummary = mayAsk(begun, resumption) && isTooLarge(begun);
    const shorter = needsSummary ? await compressedAhead(begun, context) : undefined;
    const first = firstAttempt(target, run, begun.facts, context, shorter);
    // Created lazily, because most runs are never interrupted.
    const plannerOfRun = (): AttemptPlanner => {
      if (planner) return planner;
      const targets = choice ?? new RunTargets(run.id, [target], context);
      const unfinished = begun.restored?.unfinished;
      planner = new AttemptPlanner(begun, targets, first, context, unfinished, resumption?.barred);
      return planner;
    };
    if (choice && run.hedge) hedging = new Hedging(run.hedge, begun, plannerOfRun, context);
    const outcome = await deliver(first, { state: begun, choice, plannerOfRun, hedging, client, context });
    const { finish } = begun.transcript;
    watch?.ended({ outcome, ...(finish !== undefined && { finish }) });
    return outcome;
  } catch (error) {
    watch?.ended({ outcome: 'failed' });
    // No other replica takes over what a living replica holds.
    if (state) await state.release();
    else if (resumption) await context.store.release(resumption.lease);
    throw error;
  } finally {
    client.logFields = { ...state?.account, ...watch?.logFields };
    hedging?.release();
    choice?.release();
    await planner?.release();
  }
}

/** Whether a provider may still be asked for part of the answer. */
const mayAsk = ({ restored }: RunState, resumption: Resumption | undefined): boolean =>
  !restored?.ended && !restored?.announcedError && resumption?.barred === undefined;

/** Everything needed to deliver a run. */
interface Delivery {
  readonly state: RunState;
  /** Set if there are several targets. */
  readonly choice: RunTargets | undefined;
  /** Creates the planner on first use. */
  readonly plannerOfRun: () => AttemptPlanner;
  /** Set if silent targets are hedged. */
  readonly hedging: Hedging | undefined;
  readonly client: Client;
  readonly context: RunContext;
}

async function deliver(first: FirstAttempt, delivery: Delivery): Promise<Outcome> {
  const { state, choice, plannerOfRun, hedging, client, context } = delivery;
  const { time } = context;
  const { run, restored } = state;
  let { planned } = first;
  let planner = first.kept && plannerOfRun();
  let plan: Plan | undefined;
  /**
   * Calls that the model was asked to make again: those that the client saw begin and be cancelled, and those that a
   * lost replica held.
   */
  const cut: ToolCall[] = [...(restored?.unfinished ?? [])];

  if (restored?.ended) {
    await state.output.end();
    if (restored.ended === 'error') return close(state, client, { status: 'failed' }, 'failed');
    return close(state, client, { status: 'complete' }, 'replayed');
  }
  if (restored?.announcedError) {
    await state.fail(restored.announcedError);
    return close(state, client, { status: 'failed' }, 'failed');
  }
  // The client may have disconnected while its conversation was summarised.
  if (state.signal.aborted) return abandon(state, client, context);
  let report: AttemptReport = restored?.report ?? (await read(planned, delivery));
  for (;;) {
    if (state.signal.aborted) {
      if (report.cancel_path !== undefined) plannerOfRun().observe(planned, report);
      return abandon(state, client, context);
    }
    const { ending, refusal } = report;
    context.capabilities.recognise(planned.target, modelOf(planned.target, run), report.samples);
    if (!ending || ending.cutShort) planner = plannerOfRun();
    planner?.observe(planned, report);
    if (report.added > 0) planner?.confirm(planned, state.transcript.text);
    const tail = planner?.tail(planned, report);
    if (tail) {
      state.attempts.end(planned, plan, report);
      planned = tail;
      report = await read(planned, delivery);
      continue;
    }
    if (ending) {
      choice?.answered();
      state.attempts.end(planned, plan, report);
      const lost = notMadeAgain(cut, state.transcript.closedCalls);
      await leaveLostCalls(state, lost, context, report.answer_id);
      await leaveAnswerId(state, report.answer_id, context);
      await state.finish(ending);
      return close(
        state,
        client,
        { status: 'complete' },
        state.attempts.count > 1 ? 'recovered' : 'complete',
      );
    }

    const unstreamed = refusal && (await answerWithoutStream(state, client, planned.target, refusal, time));
    if (unstreamed) {
      choice?.answered();
      state.attempts.end(planned, plan, report);
      return unstreamed;
    }

    const interruption = classify(report.end, report.phase, time.wall());
    state.attempts.end(planned, plan, report, interruption);
    planner = plannerOfRun();
    const remedy = await planner.remedy(planned, report, interruption);
    if (state.signal.aborted) return abandon(state, client, context);
    plan = remedy.plan;
    const { cause } = remedy;
    const { mode, target } = planned;
    context.log.warn(
      {
        run: run.id,
        ...withoutMessage(interruption),
        upstream: target.name,
        attempt: state.attempts.count,
        mode,
        plan: plan.kind,
      },
      'interrupted',
    );

    switch (plan.kind) {
      case 'R2':
        await finishWithToolCalls(state, plan, cause, cut, context);
        return close(state, client, { status: 'complete' }, 'salvaged');
      case 'finish':
        state.watch?.planned({ plan: plan.kind, wait_ms: 0 });
        context.metrics.recoveries.inc({ plan: plan.kind, mode: 'none', outcome: 'succeeded' });
        state.cancel(state.transcript.openCalls, cause);
        await state.finish({ reason: plan.reason, after: [] });
        return close(state, client, { status: 'complete' }, 'recovered');
      case 'give_up':
        return stop(state, client, planner.targets.told, plan.why, context);
    }

    if (plan.kind !== 'R1') state.cancel(plan.cancel, cause);
    if (plan.kind === 'R3' && run.events !== 'none') cut.push(...plan.cancel);
    if (plan.kind === 'R4') cut.length = 0;
    const hedge = hedging?.take(remedy);
    const next = hedge ? { planned: hedge.foreseen.planned, wait_ms: 0 } : await planner.next(remedy);
    if (state.signal.aborted) return abandon(state, client, context);
    if (typeof next === 'string') return stop(state, client, planner.targets.told, next, context);
    planned = next.planned;
    if (planned.mode === 'restart') state.announceReset(cause);
    state.attempts.beginRecovery(plan.kind, cause);
    planner.targets.ask(planned.target);
    state.watch?.planned({ plan: plan.kind, wait_ms: next.wait_ms });
    await state.output.flush();
    await sleep(time, next.wait_ms, state.signal);
    if (state.signal.aborted) return abandon(state, client, context);
    report = await read(planned, delivery, hedge);
  }
}

/** No options are left: a whole answer that doesn't match the requested format is better than none. */
async function stop(
  state: RunState,
  client: Client,
  told: ReportedFailure,
  why: GiveUp,
  context: RunContext,
): Promise<Outcome> {
  if (!(await state.finishWithSpare())) return giveUp(state, client, told, why, context);
  return close(state, client, { status: 'complete' }, 'complete');
}

/** Makes one attempt. `hedge`: set if it has already begun. */
async function read(
  planned: PlannedAttempt,
  { state, choice, hedging, context }: Delivery,
  hedge?: Hedge,
): Promise<AttemptReport> {
  const { target } = planned;
  const request = state.beginAttempt(planned);
  const attempt = hedge?.attempt ?? newAttempt(target, request, state, context, choice?.hasStandIn);
  const reader = new AttemptReader(state, planned, attempt, context, () => choice?.answered());
  hedging?.watch(attempt, planned, () => reader.report);
  const report = await reader.run(hedge);
  if (attempt.thought) target.health?.noteThinking();
  if (target.health && report.usage && cachedTokens(report.usage) > 0) {
    const conversation = conversationOf(state.run);
    if (conversation !== undefined) target.health.noteCached(conversation, context.time.now());
  }
  return report;
}
