import { STORE_WAIT_MAX_MS } from '../../../checkpoint/best-effort-store.ts';
import type { JournalEnd } from '../../../checkpoint/store.ts';
import { inTime } from '../../../lib/time.ts';
import { isPartial } from '../../../plans/outcome.ts';
import { shownCallId } from '../../../plans/shown-calls.ts';
import type { NamedCall, ToolCall } from '../../../plans/tool-call.ts';
import type { Transcript } from '../../../plans/transcript.ts';
import type { RequestFacts } from '../../wires/common/request.ts';
import type { ForwardedCalls } from '../../wires/common/wire.ts';
import { LEFT, type Run } from '../context/run.ts';
import type { RunContext } from '../context/run-context.ts';
import { leaveLostCallNote, lostCallNote } from './lost-calls.ts';
import { leaveThreadNote, type ThreadNote, threadNote } from './thread-notice.ts';

/** The facts about a run that go into its notices. */
interface NoticedRun {
  readonly run: Run;
  readonly transcript: Transcript;
  readonly facts: Pick<RequestFacts, 'legacyFunctions'>;
  readonly output: { readonly stream_id: string | undefined };
  readonly created_at_ms: number;
  /** When the last part of the answer arrived. */
  readonly interrupted_at_ms: number;
  readonly unfinishedCalls: readonly NamedCall[];
  readonly forwardedCalls: ForwardedCalls;
  readonly signal: AbortSignal;
}

/** The note for the thread of a run that ends early; undefined without a thread or without content. */
export function cutNote(
  {
    run,
    transcript,
    created_at_ms,
    interrupted_at_ms,
    unfinishedCalls,
    forwardedCalls,
  }: Omit<NoticedRun, 'facts' | 'output' | 'signal'>,
  end: JournalEnd,
): ThreadNote | undefined {
  const { text, refusal, closedCalls, providerTools } = transcript;
  const calls = [...closedCalls, ...forwardedCalls.settled];
  // An answer stopped by a content filter must not be continued.
  if (run.thread === undefined || end.cause === 'content_filter') return undefined;
  if (!isPartial(transcript) && calls.length === 0) return undefined;
  const { id, request } = run;
  return threadNote({
    run: id,
    created_at_ms,
    interrupted_at_ms,
    model: request.model,
    end,
    text: text || refusal,
    calls,
    unfinished: [...unfinishedCalls, ...forwardedCalls.unfinished],
    providerTools,
  });
}

/** Notes for the thread's next request that this answer was cut off. */
export async function leaveCutNote(ended: NoticedRun, end: JournalEnd, context: RunContext): Promise<void> {
  const { owner, thread } = ended.run;
  const note = cutNote(ended, end);
  if (!note || thread === undefined) return;
  await leave(ended, context, (ttl_ms) => leaveThreadNote(context.store.notes, owner, thread, note, ttl_ms));
}

/**
 * Leaves a note for requests with results of the delivered calls: other calls or provider tools were cut. `finished`:
 * the provider's id of the answer, if it finished.
 */
export async function leaveLostCalls(
  ended: NoticedRun,
  lost: readonly ToolCall[],
  context: RunContext,
  finished?: string,
): Promise<void> {
  const { run, transcript, facts, output } = ended;
  if (facts.legacyFunctions) return;
  const shown = transcript.closedCalls.map((call) => ({ ...call, id: shownCallId(call.id, call.index) }));
  const delivered = [...shown, ...ended.forwardedCalls.settled];
  const ids = run.wire.previousAnswer === undefined ? [] : [output.stream_id, finished];
  const answers = ids.filter((id) => id !== undefined);
  const unknown = transcript.providerTools.filter(({ state }) => state === 'running');
  const note = lostCallNote(run.id, delivered, lost, answers, unknown);
  if (!note) return;
  await leave(ended, context, (ttl_ms) => leaveLostCallNote(context.store.notes, run.owner, note, ttl_ms));
}

/** Bounded by a timeout, and never rejects. Does nothing if another replica has the run. */
async function leave(
  { run, signal }: NoticedRun,
  { configuration, time, log }: RunContext,
  put: (ttl_ms: number) => Promise<void>,
): Promise<void> {
  const isOurs = !signal.aborted || signal.reason === LEFT;
  if (!configuration.resume.notices || !isOurs) return;
  const left = put(configuration.checkpoint.ttl_s * 1000).catch((error: unknown) => {
    log.warn({ run: run.id, err: error }, 'note not stored: the store refuses it');
  });
  await inTime(left, time, STORE_WAIT_MAX_MS);
}
