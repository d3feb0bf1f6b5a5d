import { expect } from 'vitest';
import { callsIn } from './long-conversation.ts';
import { messagesOf, type SentBody } from './overflow-deployment.ts';

/** The summary of a long conversation that the summarising model gives. */
export const SUMMARY =
  'The user asks for high water at Brest and Lorient; until day 5 it was at the hour of the day.';
/** How many of the last messages are kept. */
export const KEPT = 8;

/** Checks what was sent instead of the conversation: the instructions, the summary, and the last messages unchanged. */
export function expectCompressed(
  sent: SentBody,
  request: { readonly [field: string]: unknown },
  keep = KEPT,
): void {
  const [before, after] = [messagesOf(request as SentBody), messagesOf(sent)];
  const pinned = before.filter(({ role }) => role === 'system' || role === 'developer');
  expect(after.slice(0, pinned.length)).toEqual(pinned);
  const said = after[pinned.length];
  expect(said?.role).toBe('user');
  expect(String(said?.content)).toContain(SUMMARY);
  const end = after.slice(pinned.length + 1);
  expect(end.length).toBeGreaterThanOrEqual(keep);
  expect(end).toEqual(before.slice(before.length - end.length));
  expect(after.length).toBeLessThan(before.length / 2);
  const { calls, results } = callsIn(after);
  expect(calls.length).toBeGreaterThan(0);
  expect(calls).toEqual(results);
  // Everything else is what the client asked for.
  const { messages: _, input: __, ...asked } = request;
  const { messages: ___, input: ____, ...rest } = sent;
  expect(rest).toEqual(asked);
}
