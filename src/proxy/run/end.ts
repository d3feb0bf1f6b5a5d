import { STORE_WAIT_MAX_MS } from '../../checkpoint/best-effort-store.ts';
import { CLIENT_LEFT, type FinalStatus, type JournalEnd } from '../../checkpoint/store.ts';
import type { Cause, Interruption } from '../../interrupts/interruption.ts';
import { inTime } from '../../lib/time.ts';
import { type GiveUp, isBar, type Plan } from '../../plans/decide.ts';
import { isPartial, type Outcome } from '../../plans/outcome.ts';
import type { ToolCall } from '../../plans/tool-call.ts';
import type { Transcript } from '../../plans/transcript.ts';
import type { Client } from '../downstream/client.ts';
import { retryAfter } from '../downstream/failure-status.ts';
import { responseHeaders } from '../upstream/headers.ts';
import { errorBodyOn } from '../wires/common/wire.ts';
import { HAND_OVER, LEFT } from './context/run.ts';
import type { RunContext } from './context/run-context.ts';
import type { ObservedFailure } from './context/run-observer.ts';
import { failureEvent, failureResponse, withRunId } from './failure.ts';
import { notMadeAgain } from './notices/lost-calls.ts';
import { leaveCutNote, leaveLostCalls } from './notices/record-notices.ts';
import { type RunState, SUPERSEDED } from './run-state.ts';
import type { ReportedFailure } from './targets/run-targets.ts';

/** Ends a run without options left: the client gets an error, in the stream or instead of it. */
export async function giveUp(
  state: RunState,
  client: Client,
  { interruption, target, report: { refusal } }: ReportedFailure,
  why: GiveUp,
  context: RunContext,
): Promise<Outcome> {
  const cause = isBar(why) ? why : interruption.cause;
  const failure: ObservedFailure = {
    cause,
    ...(interruption.status !== undefined && { status: interruption.status }),
    attempts: state.attempts.count,
  };
  state.watch?.planned({ plan: 'give_up', why, wait_ms: 0, failure });
  const end = { status: finalStatus(interruption, state.transcript), cause };
  if (client.begun) {
    const { attempts, created_at_ms, output } = state;
    const { stream_id } = output;
    const { settled: forwarded, unfinished } = state.forwardedCalls;
    const failure = { interruption, why, attempts: attempts.count, created_at_ms, stream_id, forwarded };
    // Stored first: once the client has the end, no other replica may lack part of the answer.
    await state.persist();
    await leaveCutNote(state, end, context);
    if (forwarded.length > 0) await leaveLostCalls(state, unfinished, context);
    await state.fail(failureEvent(state.run, state.transcript, failure));
    return close(state, client, end, 'failed');
  }
  const { id, wire } = state.run;
  const named = { 'holdfast-run-id': id };
  if (refusal && refusal.status >= 400) {
    // The provider's refusal is meant for the client, so it passes verbatim.
    client.reject(
      refusal.status,
      { ...responseHeaders(refusal.headers, target.upstream), ...named },
      refusal.body,
    );
  } else {
    const { status, body, headers: more } = failureResponse({ target }, { interruption });
    const told = errorBodyOn(wire, withRunId(body, id));
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      ...named,
      ...retryAfter(interruption.retry_after_ms),
      ...more,
    };
    client.reject(status, headers, told);
  }
  return close(state, client, end, 'rejected');
}

/** Stores the end of the run on this replica. */
export async function close(
  state: RunState,
  client: Client,
  end: JournalEnd,
  outcome: Outcome,
): Promise<Outcome> {
  if (state.isWithdrawn) return withdraw(state, client);
  await state.close(end);
  return outcome;
}

/** The run's signal has aborted: end it without an answer, or leave it to another replica. */
export async function abandon(state: RunState, client: Client, context: RunContext): Promise<Outcome> {
  const { reason } = state.signal;
  if (reason === HAND_OVER || reason === SUPERSEDED) return withdraw(state, client);
  if (reason === LEFT && (await isRead(state, context))) {
    await state.release();
    return 'cancelled';
  }
  const end: JournalEnd =
    reason === LEFT ? { status: 'cancelled', cause: CLIENT_LEFT } : { status: 'cancelled' };
  if (reason === LEFT) await leaveCutNote(state, end, context);
  await state.close(end);
  return 'cancelled';
}

/**
 * Whether another client now waits for the run: a repeated request may arrive before we notice that the first client
 * disconnected.
 */
async function isRead({ run }: RunState, { store, time }: RunContext): Promise<boolean> {
  const note = store.notes.get(run.owner, { kind: 'reader', name: run.id });
  const isNoted = note.then(
    (value) => value !== undefined,
    () => false,
  );
  return (await inTime(isNoted, time, STORE_WAIT_MAX_MS)) ?? false;
}

/** Leaves the run to another replica. */
async function withdraw(state: RunState, client: Client): Promise<Outcome> {
  await state.release();
  if (client.opened) client.destroy();
  return state.signal.reason === HAND_OVER ? 'handed_over' : 'superseded';
}

/** The final status of a run that is given up after this interruption. */
export function finalStatus({ evidence }: Interruption, transcript: Transcript): FinalStatus {
  if (!isPartial(transcript)) return 'failed';
  if (evidence.kind === 'replica_lost') return 'recovered_from_partial';
  return evidence.kind === 'clock' ? 'timeout_partial' : 'failed';
}

/** R2: the settled calls are the answer. The others were cut, like those in `before` earlier. */
export async function finishWithToolCalls(
  state: RunState,
  { settle, cancel }: Extract<Plan, { kind: 'R2' }>,
  cause: Cause,
  before: readonly ToolCall[],
  context: RunContext,
): Promise<void> {
  state.watch?.planned({ plan: 'R2', wait_ms: 0 });
  state.settle(settle);
  state.cancel(cancel, cause);
  // Settled work is stored before the client learns that the turn is over.
  await state.persist();
  context.metrics.recoveries.inc({ plan: 'R2', mode: 'none', outcome: 'succeeded' });
  const lost = [...notMadeAgain(before, state.transcript.closedCalls), ...cancel];
  await leaveLostCalls(state, lost, context);
  await state.finish({ reason: state.facts.legacyFunctions ? 'function_call' : 'tool_calls', after: [] });
}
