import { expect } from 'vitest';
import { callsIn } from './long-conversation.ts';
import { messagesOf, type SentBody } from './overflow-deployment.ts';

/** Of a long conversation, as the model that summarises has it. */
export const SUMMARY =
  'The user asks for high water at Brest and Lorient; until day 5 it was at the hour of the day.';
/** Of the last messages. */
export const KEPT = 8;

/** What was sent in place of the conversation: instructions, the summary, and the end of it as it was. */
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
  // All else is as the client asked for it.
  const { messages: _, input: __, ...asked } = request;
  const { messages: ___, input: ____, ...rest } = sent;
  expect(rest).toEqual(asked);
}
