import type { Cause } from '../interrupts/interruption.ts';
import type { Plan } from '../plans/decide.ts';
import type { ToolCall } from '../plans/transcript.ts';
import { leaveLostCalls } from './notices/left-notes.ts';
import { notMadeAgain } from './notices/lost-calls.ts';
import type { RunContext } from './run.ts';
import type { Turn } from './turn.ts';

/** R2: the calls that are proven closed are the answer; the others were cut, as those in `before` were earlier. */
export async function settle(
  turn: Turn,
  { settle, cancel }: Extract<Plan, { kind: 'R2' }>,
  cause: Cause,
  before: readonly ToolCall[],
  context: RunContext,
): Promise<void> {
  turn.watch?.planned({ plan: 'R2', wait_ms: 0 });
  turn.settle(settle);
  turn.cancel(cancel, cause);
  // Settled work is stored before the client is told that the turn is over.
  await turn.persist();
  context.metrics.recoveries.inc({ plan: 'R2', mode: 'none', outcome: 'succeeded' });
  const lost = [...notMadeAgain(before, turn.transcript.closedCalls), ...cancel];
  await leaveLostCalls(turn, lost, context);
  await turn.finish({ reason: turn.facts.legacyFunctions ? 'function_call' : 'tool_calls', after: [] });
}
