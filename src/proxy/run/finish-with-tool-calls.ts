import type { Cause } from '../../interrupts/interruption.ts';
import type { Plan } from '../../plans/decide.ts';
import type { ToolCall } from '../../plans/transcript.ts';
import type { RunContext } from './context/run-context.ts';
import { notMadeAgain } from './notices/lost-calls.ts';
import { leaveLostCalls } from './notices/record-notices.ts';
import type { RunState } from './run-state.ts';

/** R2: the calls that are proven closed are the answer; the others were cut, as those in `before` were earlier. */
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
  // Settled work is stored before the client is told that the turn is over.
  await state.persist();
  context.metrics.recoveries.inc({ plan: 'R2', mode: 'none', outcome: 'succeeded' });
  const lost = [...notMadeAgain(before, state.transcript.closedCalls), ...cancel];
  await leaveLostCalls(state, lost, context);
  await state.finish({ reason: state.facts.legacyFunctions ? 'function_call' : 'tool_calls', after: [] });
}
