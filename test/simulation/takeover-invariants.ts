import { expect } from 'vitest';
import type { Outcome } from '../../src/plans/outcome.ts';
import { type ExpectedAnswer, expectedAnswer } from '../provider/expected.ts';
import type { Plan } from '../provider/script.ts';
import { assertInvariants, delivered } from './invariants.ts';
import { chatRequest } from './simulate.ts';
import type { TakeoverOptions, Takeovers } from './takeovers.ts';

/** Asserts that a run that went through several replicas has the same result as on a single one. */
export function assertTakeoverInvariants(plan: Plan, options: TakeoverOptions, run: Takeovers): void {
  expect(run.violations).toEqual([]);
  const whole = expectedAnswer(plan, chatRequest(options.request) as never);
  const signatures = whole.toolCalls.map((call) => signature(call.name, call.arguments));
  for (const call of run.stream.toolCalls) {
    const place = signatures.indexOf(signature(call.name, call.arguments));
    if (run.stream.done) expect(place, `a call came again: ${JSON.stringify(call)}`).toBeGreaterThan(-1);
    if (place >= 0) signatures.splice(place, 1);
  }
  // Only the highest proof holds a call back after text has followed it.
  const losesHeldCalls = options.recovery?.tool_proof === 3 && run.outcomes.length > 1;
  assertInvariants(plan, options, {
    ...run,
    takeover: { losesHeldCalls },
    outcome: outcomeOf(run, whole, options),
  });
}

const signature = (name: string, text: string): string => `${name} ${text === '' ? '{}' : text}`;

/** The run's outcome on the replica that ended it. A replica that only delivers the end doesn't know it. */
function outcomeOf(
  { outcome, stream, requests, asked }: Takeovers,
  { text, toolCalls }: ExpectedAnswer,
  options: TakeoverOptions,
): Outcome {
  if (asked || !stream.done) return outcome;
  const isLess = stream.toolCalls.length < delivered(toolCalls, options).length || stream.text !== text;
  if (stream.finish === 'tool_calls' && isLess) return 'salvaged';
  return requests.length === 1 ? 'complete' : 'recovered';
}
