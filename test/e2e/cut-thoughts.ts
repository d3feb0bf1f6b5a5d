import type { Answer, ChatClient } from './clients/chat-client.ts';

/** The uncut answer as this client has it where it was recovered: what was shown of thoughts that were cut comes before them. */
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
