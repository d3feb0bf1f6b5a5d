import { type Middle, middleOf, type Saying, summaryMessage } from '../../../plans/compression.ts';
import type { Compression } from '../../../plans/delta.ts';
import type { Conversation, ConversationPart } from '../../wires/common/conversation.ts';
import type { WireRequest } from '../../wires/common/wire.ts';

/** What of the conversation in a request is left out for a summary. */
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

/** A conversation, and how it is taken apart. */
export interface TakenApart {
  readonly conversation: Conversation;
  readonly request: WireRequest;
  readonly messages: readonly unknown[];
  readonly parts: readonly ConversationPart[];
}

/** `undefined` where a part of the conversation is not in the request. */
export function takenApart(conversation: Conversation, request: WireRequest): TakenApart | undefined {
  const messages = conversation.messagesOf(request);
  return (
    messages && { conversation, request, messages, parts: messages.map((one) => conversation.partOf(one)) }
  );
}

/** `undefined` where nothing can be left out. */
export function omissionOf(
  conversation: Conversation,
  request: WireRequest,
  keep_messages: number,
): Omission | undefined {
  const taken = takenApart(conversation, request);
  const middle = taken && middleOf(taken.parts, keep_messages);
  return middle && omissionAt(taken, middle);
}

/** `told_before`: the position up to which the model that summarises has a summary already. */
export function omissionAt(
  { conversation, request, messages, parts }: TakenApart,
  { left_out: places, joined_to }: Middle,
  told_before = 0,
): Omission {
  const left_out = new Set(places);
  const told = parts.filter(
    (_, index) => index >= told_before && (left_out.has(index) || index === joined_to),
  );
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
        const isPlace = joined_to === undefined && index === places[0];
        return isPlace ? [conversation.messageOf(text)] : [];
      });
    },
  };
}

/** What is missing of the client's `own` conversation in a `shorter` one. */
export function compressionTo(
  shorter: readonly unknown[],
  own: readonly unknown[],
  { joined }: Omission,
  summary: string,
): Compression {
  const stays = new Set([...shorter, joined]);
  const left_out = own.filter((message) => !stays.has(message));
  return {
    messages: left_out.length,
    characters: charactersOf(left_out),
    summary_characters: summary.length,
  };
}

/** As they are written in a request. */
export const charactersOf = (messages: readonly unknown[]): number => JSON.stringify(messages).length;
