import type { Part, Saying } from '../../../plans/compression.ts';
import type { WireRequest } from './wire.ts';

/** One message of a conversation, or one item where a wire has those. */
export interface ConversationPart extends Part {
  /** Its content, for the summary. */
  readonly sayings: readonly Saying[];
}

/** How the conversation in the requests of a wire is taken apart, and put together again in fewer words. */
export interface Conversation<Request extends WireRequest = WireRequest> {
  /** In order; `undefined` where a part of the conversation is not in the request. */
  messagesOf(request: Request): readonly unknown[] | undefined;
  partOf(message: unknown): ConversationPart;
  /** The same request with another conversation. */
  withMessages(request: Request, messages: readonly unknown[]): Request;
  /** A message of the user's. */
  messageOf(text: string): object;
  /** The user's message, with `text` after what it says. */
  joined(message: unknown, text: string): unknown;
}

/** What a message says that stands for something a summary cannot have. */
export const stoodFor = (type: unknown): string => `[${String(type)}]`;

/** As it is written in a request, whatever it is. */
export const written = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
