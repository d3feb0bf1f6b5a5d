import { isObject } from '../../../lib/json.ts';
import type { Fields } from '../../../lib/json-body.ts';
import type { Part, Saying } from '../../../plans/compression.ts';
import type { SettledCall } from '../../../plans/tool-call.ts';
import type { WireRequest } from './wire.ts';

/** One message of a conversation, or one item on wires with items. */
export interface ConversationPart extends Part {
  /** Its content, for the summary. */
  readonly sayings: readonly Saying[];
}

/** How to split the conversation in a wire's requests, and reassemble it with a summary. */
export interface Conversation<Request extends WireRequest = WireRequest> {
  /** In order; `undefined` if part of the conversation is not in the request. */
  messagesOf(request: Request): readonly unknown[] | undefined;
  /** The messages that the request contains. */
  sentIn(request: Request): readonly unknown[];
  partOf(message: unknown): ConversationPart;
  /** The same request with another conversation. */
  withMessages(request: Request, messages: readonly unknown[]): Request;
  /** Creates a user message. */
  messageOf(text: string): object;
  /** The user message with `text` appended. */
  joined(message: unknown, text: string): unknown;
}

/** The client's input since the model's last answer, in the client's format: questions and tool results. */
export function inputOf<Request extends WireRequest>(
  { sentIn, partOf }: Conversation<Request>,
  request: Request,
): readonly unknown[] {
  const sent = sentIn(request);
  const isModels = (message: unknown) => partOf(message).kind === 'model';
  // A client's own prefill belongs to its input.
  return sent.slice(sent.slice(0, -1).findLastIndex(isModels) + 1);
}

/** A placeholder for content that a summary can't contain. */
export const stoodFor = (type: unknown): string => `[${String(type)}]`;

/** Any value as text, like in a request. */
export const written = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);

/** An extra instruction for the model: the same text on every wire, in that wire's format. */
export interface Notice {
  /** `instructions`: next to the client's instructions. `tool_results`: after the last tool result. */
  readonly place: 'instructions' | 'tool_results';
  readonly text: string;
}

/**
 * How a notice is inserted. `added`: in its own place on the wire. `joined`: as part of a client message, because some
 * chat templates refuse a second system message, or a user message after a tool result. `left_out`: not at all.
 */
export const FORMS = ['added', 'joined', 'left_out'] as const;
export type Form = (typeof FORMS)[number];

/** A call that the request represents only by its result, because the provider stores the conversation. */
interface KeptCall {
  readonly id: string;
  /** The answer that the request continues, if named. */
  readonly answer: string | undefined;
}

/** A call whose result is in a request. */
export type AnsweredCall = SettledCall | KeptCall;

/** How to add notices to a wire's requests. Requests are unvalidated client input. */
export interface WireNotices {
  /** The calls of the latest turn whose results are in the request. */
  answeredCalls(request: Fields): readonly AnsweredCall[];
  /**
   * Adds the notice to the request and leaves the rest unchanged. `asked`: the client's original, if the request
   * extends it.
   */
  withNotice(request: Fields, notice: Notice, form: Exclude<Form, 'left_out'>, asked?: Fields): Fields;
}

/** The content with a text appended; `undefined` if that isn't possible. `type`: the type of text parts. */
export function withText(content: unknown, text: string, type: string): unknown {
  if (typeof content === 'string') return content === '' ? text : `${content}\n\n${text}`;
  if (Array.isArray(content)) return [...(content as unknown[]), { type, text }];
  return undefined;
}

type Message = Readonly<Record<string, unknown>>;

/** The model's last answer in a conversation, and the client's input since. */
interface LatestTurn {
  readonly answer: Message | undefined;
  readonly since: readonly Message[];
}

/** `messages`: unvalidated client input. */
export function latestTurn(messages: unknown): LatestTurn {
  const all = Array.isArray(messages) ? messages.filter(isObject) : [];
  // A client's own prefill comes after its input.
  const end = all.at(-1)?.role === 'assistant' ? all.length - 1 : all.length;
  const turn = all.slice(0, end).findLastIndex(({ role }) => role === 'assistant');
  return { answer: all[turn], since: all.slice(turn + 1, end) };
}
