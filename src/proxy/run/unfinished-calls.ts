import type { HeldCalls } from '../../plans/held-calls.ts';
import { isRepeated } from '../../plans/repeated-calls.ts';
import { shownCallId } from '../../plans/shown-calls.ts';
import type { ToolCall, Transcript } from '../../plans/transcript.ts';
import { notMadeAgain } from './notices/lost-calls.ts';

/**
 * Calls that have begun and are not settled: those under way, and those that were cut and not made again. `before`: those
 * that were cut with the replicas before this one.
 */
export function unfinishedIn(transcript: Transcript, before: readonly ToolCall[] = []): readonly ToolCall[] {
  const { toolCalls, openCalls, closedCalls } = transcript;
  const cut = toolCalls.filter((call) => call.state === 'cancelled' && !isRepeated(call, closedCalls));
  return [...notMadeAgain([...before, ...cut], closedCalls), ...openCalls];
}

/** The same as they are noted. `hasIds`: false for the calls of the legacy interface. */
export function heldIn(
  transcript: Transcript,
  before: readonly ToolCall[] | undefined,
  hasIds: boolean,
): HeldCalls {
  const calls = unfinishedIn(transcript, before).map(({ id, name, index }) => ({
    id: hasIds ? shownCallId(id, index) : id,
    name,
  }));
  return { calls, settled: transcript.closedCalls.length };
}
