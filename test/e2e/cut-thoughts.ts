import type { Answer, ChatClient } from './clients/chat-client.ts';

/**
 * The uncut answer as this client would have it after a recovery: clients that keep cut reasoning have it ahead of the
 * rest.
 */
export function recoveredOf(
  client: ChatClient,
  uncut: Answer | undefined,
  { reasoning = '' }: Answer,
): Answer | undefined {
  const whole = uncut?.reasoning;
  if (!client.tellsCutThoughts || !uncut || !whole || !reasoning.endsWith(whole)) return uncut;
  const begun = reasoning.slice(0, -whole.length);
  return whole.startsWith(begun) ? { ...uncut, reasoning } : uncut;
}
