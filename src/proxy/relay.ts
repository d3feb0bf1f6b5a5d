import { classify } from '../interrupts/classify.ts';
import { patient } from '../interrupts/clocks.ts';
import { withoutMessage } from '../interrupts/interruption.ts';
import type { Plan } from '../plans/decide.ts';
import type { ToolCall } from '../plans/transcript.ts';
import { sleep } from '../time.ts';
import { leaveAnswerId } from './answer-ids.ts';
import { Attempt } from './attempt.ts';
import { countAttempt } from './attempt-count.ts';
import type { AttemptReport } from './attempt-report.ts';
import { leaveLostCalls } from './notices/left-notes.ts';
import { notMadeAgain } from './notices/lost-calls.ts';
import { Reading } from './reading.ts';
import { Recovery } from './recovery.ts';
import type { PlannedAttempt } from './recovery-request.ts';
import type { Client, Outcome, Resumption, Run, RunContext } from './run.ts';
import { abandon, close, giveUp } from './run-end.ts';
import { beginWatching } from './run-watching.ts';
import { settle } from './settle.ts';
import { RunRequests } from './targets/run-requests.ts';
import { RunTargets } from './targets/run-targets.ts';
import { Turn } from './turn.ts';
import { withoutStream } from './without-stream.ts';

/**
 * Delivers one run: opens an attempt and shows the client what it says; when it ends, either the answer is whole,
 * or the interruption is classified, a plan decided on, the next request built, and round it goes.
 *
 * What is said by whom is kept apart: `report` is one attempt, `turn` is the run, `targets` knows who is asked,
 * `requests` how, and `recovery` brings them together where a plan is needed. The decisions themselves are pure functions
 * in `interrupts/` and `plans/`.
 *
 * A run that another replica began (`resumption`) goes the same way: what was delivered of it is an attempt that was
 * interrupted by the loss of its replica.
 */
export async function relay(
  run: Run,
  client: Client,
  unwatched: RunContext,
  resumption?: Resumption,
): Promise<Outcome> {
  const { watch, context, show } = beginWatching(run, unwatched, resumption);
  if (watch?.logFields) client.logFields = watch.logFields;
  const targets = new RunTargets(run, context);
  const target = resumption ? targets.resume(run.target) : targets.begin();
  const turn = new Turn(run.targets ? { ...run, target } : run, client, context, watch, resumption);
  show(turn.transcript);
  const requests = new RunRequests(run, context, turn.facts);
  try {
    const outcome = await deliver(turn, targets, requests, client, context, resumption);
    const { finish } = turn.transcript;
    watch?.ended({ outcome, ...(finish !== undefined && { finish }) });
    return outcome;
  } catch (error) {
    watch?.ended({ outcome: 'failed' });
    // While this replica lives, nobody takes from it what it holds.
    await turn.release();
    throw error;
  } finally {
    targets.release();
    await requests.release();
  }
}

async function deliver(
  turn: Turn,
  targets: RunTargets,
  requests: RunRequests,
  client: Client,
  context: RunContext,
  resumption?: Resumption,
): Promise<Outcome> {
  const { time } = context;
  const { run } = turn;
  const recovery = new Recovery(turn, targets, requests, context, resumption?.barred);
  const log = context.log.child({ run: run.id });
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
    const tail = requests.tail(planned, report);
    if (tail) {
      countAttempt(turn, planned, plan, report, undefined, context);
      planned = tail;
      report = await read(planned, turn, targets, context);
      continue;
    }
    if (report.ending) {
      targets.answered();
      countAttempt(turn, planned, plan, report, undefined, context);
      const lost = notMadeAgain(cut, turn.transcript.closedCalls);
      await leaveLostCalls(turn, lost, context, report.answer_id);
      await leaveAnswerId(turn, report.answer_id, context);
      await turn.finish(report.ending);
      return close(turn, client, { status: 'complete' }, turn.attempts > 1 ? 'recovered' : 'complete');
    }

    const unstreamed = await withoutStream(turn, client, planned.target, report, time);
    if (unstreamed) {
      targets.answered();
      countAttempt(turn, planned, plan, report, undefined, context);
      return unstreamed;
    }

    const interruption = classify(report.end, report.phase);
    countAttempt(turn, planned, plan, report, interruption, context);
    const remedy = await recovery.remedy(planned, report, interruption);
    if (turn.signal.aborted) return abandon(turn, client);
    plan = remedy.plan;
    const { cause } = remedy;
    const { mode, target } = planned;
    log.warn(
      {
        ...withoutMessage(interruption),
        upstream: target.name,
        attempt: turn.attempts,
        mode,
        plan: plan.kind,
      },
      'interrupted',
    );

    switch (plan.kind) {
      case 'R2':
        await settle(turn, plan, cause, cut, context);
        return close(turn, client, { status: 'complete' }, 'salvaged');
      case 'finish':
        turn.watch?.planned({ plan: plan.kind, wait_ms: 0 });
        context.metrics.recoveries.inc({ plan: plan.kind, mode: 'none', outcome: 'succeeded' });
        turn.cancel(turn.transcript.openCalls, cause);
        await turn.finish({ reason: plan.reason, after: [] });
        return close(turn, client, { status: 'complete' }, 'recovered');
      case 'give_up':
        return giveUp(turn, client, targets.told, plan.why, context);
    }

    if (plan.kind !== 'R1') turn.cancel(plan.cancel, cause);
    if (plan.kind === 'R3' && run.events !== 'none') cut.push(...plan.cancel);
    const next = recovery.next(remedy);
    if (!next) return giveUp(turn, client, targets.told, 'no_way_left', context);
    planned = next.planned;
    if (planned.mode === 'restart') turn.announceReset(cause);
    turn.beginRecovery(plan.kind, cause);
    targets.ask(planned.target);
    turn.watch?.planned({ plan: plan.kind, wait_ms: next.wait_ms });
    await turn.flush();
    await sleep(time, next.wait_ms, turn.signal);
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
  const limits = { ...configuration.clocks, ...planned.target.upstream.clocks };
  const clocks = turn.run.unstreamed ? patient(limits) : limits;
  const { event_bytes } = configuration.limits;
  const { ledger, request } = turn.beginAttempt(planned);
  const attempt = new Attempt(transport, request, { clocks, event_bytes }, time, turn.signal);
  const reading = new Reading(turn, planned, ledger, attempt, context, () => targets.answered());
  await reading.run();
  return reading;
}
