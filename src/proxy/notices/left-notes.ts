import type { JournalEnd } from '../../checkpoint/journal-writer.ts';
import type { RunEnd } from '../../checkpoint/store.ts';
import type { Interruption } from '../../interrupts/interruption.ts';
import { isPartial } from '../../plans/partial.ts';
import type { ToolCall } from '../../plans/transcript.ts';
import { inTime } from '../../time.ts';
import type { RunContext } from '../run.ts';
import { shownCallId } from '../shown-calls.ts';
import { STORE_WAIT_MAX_MS } from '../store-patience.ts';
import type { Turn } from '../turn.ts';
import { leaveLostCallNote, lostCallNote } from './lost-calls.ts';
import { leaveThreadNote, type ThreadNote, threadNote } from './thread-notice.ts';

/** What the thread of a run that is given up has to be told, if it is of one and there is anything to tell. */
export function cutNote(
  { run, transcript, created_at_ms }: Pick<Turn, 'run' | 'transcript' | 'created_at_ms'>,
  end: RunEnd,
  { cause }: Interruption,
): ThreadNote | undefined {
  const { text, refusal } = transcript;
  // An answer that a filter has stopped is not one to go on with.
  if (run.thread === undefined || !isPartial(transcript) || cause === 'content_filter') return undefined;
  return threadNote({ run: run.id, created_at_ms, model: run.request.model, end, text: text || refusal });
}

/** Leaves what the next request of the run's thread has to tell: its answer was cut off. */
export async function leaveCutNote(
  turn: Turn,
  end: JournalEnd,
  interruption: Interruption,
  context: RunContext,
): Promise<void> {
  const { owner, thread } = turn.run;
  const note = cutNote(turn, { ...end, at_ms: context.time.wall() }, interruption);
  if (!note || thread === undefined) return;
  await leave(turn, context, (ttl_ms) => leaveThreadNote(context.store.notes, owner, thread, note, ttl_ms));
}

/**
 * Leaves what the results of the delivered calls have to tell: other calls were cut. `finished`: what the provider calls
 * the answer, if it has finished it.
 */
export async function leaveLostCalls(
  turn: Turn,
  lost: readonly ToolCall[],
  context: RunContext,
  finished?: string,
): Promise<void> {
  const { run, transcript, facts, delivery } = turn;
  if (facts.legacyFunctions) return;
  const delivered = transcript.closedCalls.map((call) => ({ ...call, id: shownCallId(call.id, call.index) }));
  const ids = run.wire.previousAnswer === undefined ? [] : [delivery.stream_id, finished];
  const answers = ids.filter((id) => id !== undefined);
  const note = lostCallNote(run.id, delivered, lost, answers);
  if (!note) return;
  await leave(turn, context, (ttl_ms) => leaveLostCallNote(context.store.notes, run.owner, note, ttl_ms));
}

/** Waits for no slow store, and never rejects. A run that is another replica's by now has nothing to leave. */
async function leave(
  { run, signal }: Turn,
  { configuration, time, log }: RunContext,
  put: (ttl_ms: number) => Promise<void>,
): Promise<void> {
  if (!configuration.resume.notices || signal.aborted) return;
  const left = put(configuration.checkpoint.ttl_s * 1000).catch((error: unknown) => {
    log.warn({ run: run.id, err: error }, 'note not left: the store does not take it');
  });
  await inTime(left, time, STORE_WAIT_MAX_MS);
}
