import { expect } from 'vitest';
import type { Outcome } from '../../src/plans/outcome.ts';
import { type ExpectedAnswer, expectedAnswer } from '../provider/expected.ts';
import type { Plan } from '../provider/script.ts';
import { assertInvariants, delivered } from './invariants.ts';
import { chatRequest } from './simulate.ts';
import type { TakeoverOptions, Takeovers } from './takeovers.ts';

/** Asserts that a run which went through several replicas is what it would be had it stayed with one. */
export function assertTakeoverInvariants(plan: Plan, options: TakeoverOptions, run: Takeovers): void {
  expect(run.violations).toEqual([]);
  const whole = expectedAnswer(plan, chatRequest(options.request) as never);
  const signatures = whole.toolCalls.map((call) => signature(call.name, call.arguments));
  for (const call of run.stream.toolCalls) {
    const place = signatures.indexOf(signature(call.name, call.arguments));
    if (run.stream.done) expect(place, `a call came again: ${JSON.stringify(call)}`).toBeGreaterThan(-1);
    if (place >= 0) signatures.splice(place, 1);
  }
  // Only the highest proof lets a call wait for longer than until text follows.
  const losesHeldCalls = options.recovery?.tool_proof === 3 && run.outcomes.length > 1;
  assertInvariants(plan, options, {
    ...run,
    takeover: { losesHeldCalls },
    outcome: outcomeOf(run, whole, options),
  });
}

const signature = (name: string, text: string): string => `${name} ${text === '' ? '{}' : text}`;

/** As the run ended for the replica that came to its end; a replica that only delivers that does not know. */
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
