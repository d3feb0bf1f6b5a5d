import { type Middle, middleOf, type Saying, summaryMessage } from '../../../plans/compression.ts';
import type { Compression } from '../../../plans/delta.ts';
import type { Conversation, ConversationPart } from '../../wires/common/conversation.ts';
import type { WireRequest } from '../../wires/common/wire.ts';

/** The part of a request's conversation that a summary replaces. */
export interface Omission {
  /** The original conversation. */
  readonly messages: readonly unknown[];
  /** The content of the omitted part. */
  readonly sayings: readonly Saying[];
  /** The conversation with a summary in place of that part. */
  withSummary(summary: string): readonly unknown[];
  /** The request with a compressed conversation. */
  requestWith(messages: readonly unknown[]): WireRequest;
  /** The message that the summary is added to, if any. */
  readonly joined: unknown;
}

/** A conversation and its parts. */
export interface TakenApart {
  readonly conversation: Conversation;
  readonly request: WireRequest;
  readonly messages: readonly unknown[];
  readonly parts: readonly ConversationPart[];
}

/** `undefined` if part of the conversation is not in the request. */
export function takenApart(conversation: Conversation, request: WireRequest): TakenApart | undefined {
  const messages = conversation.messagesOf(request);
  return (
    messages && { conversation, request, messages, parts: messages.map((one) => conversation.partOf(one)) }
  );
}

/** `undefined` if nothing can be omitted. */
export function omissionOf(
  conversation: Conversation,
  request: WireRequest,
  keep_messages: number,
): Omission | undefined {
  const taken = takenApart(conversation, request);
  const middle = taken && middleOf(taken.parts, keep_messages);
  return middle && omissionAt(taken, middle);
}

/** `told_before`: the index up to which the summarising model already has a summary. */
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

/** Measures what `shorter` omits from the client's `own` conversation. */
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

/** Characters as JSON. */
export const charactersOf = (messages: readonly unknown[]): number => JSON.stringify(messages).length;
