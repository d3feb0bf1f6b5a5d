import { middleOf } from '../../../plans/compression.ts';
import { type Saying, summaryMessage } from '../../../plans/summary-text.ts';
import type { Conversation } from '../../wires/common/conversation.ts';
import type { WireRequest } from '../../wires/common/wire.ts';

/** What of the conversation in a request is to be left out. */
export interface Omission {
  /** The conversation as it is. */
  readonly messages: readonly unknown[];
  /** What was said in the part that is left out. */
  readonly sayings: readonly Saying[];
  /** The conversation with a summary in the place of that part. */
  withSummary(summary: string): readonly unknown[];
  /** The same request with such a conversation. */
  requestWith(messages: readonly unknown[]): WireRequest;
  /** The message that stays with the summary added to it, if there is one. */
  readonly joined: unknown;
}

/** `undefined` where nothing can be left out. */
export function omissionOf(
  conversation: Conversation,
  request: WireRequest,
  keep_messages: number,
): Omission | undefined {
  const messages = conversation.messagesOf(request);
  if (!messages) return undefined;
  const parts = messages.map((message) => conversation.partOf(message));
  const middle = middleOf(parts, keep_messages);
  if (!middle) return undefined;
  const { joined_to } = middle;
  const left_out = new Set(middle.left_out);
  const told = parts.filter((_, index) => left_out.has(index) || index === joined_to);
  return {
    messages,
    sayings: told.flatMap(({ sayings }) => sayings),
    requestWith: (shorter) => conversation.withMessages(request, shorter),
    joined: joined_to === undefined ? undefined : messages[joined_to],
    withSummary(summary) {
      const text = summaryMessage(summary);
      return messages.flatMap((message, index) => {
        if (index === joined_to) return [conversation.joined(message, text)];
        if (!left_out.has(index)) return [message];
        const isPlace = joined_to === undefined && index === middle.left_out[0];
        return isPlace ? [conversation.messageOf(text)] : [];
      });
    },
  };
}

/** As they are written in a request. */
export const charactersOf = (messages: readonly unknown[]): number => JSON.stringify(messages).length;
