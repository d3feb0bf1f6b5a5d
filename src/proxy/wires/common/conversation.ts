import { isObject } from '../../../lib/json.ts';
import type { Fields } from '../../../lib/json-body.ts';
import type { Part, Saying } from '../../../plans/compression.ts';
import type { SettledCall } from '../../../plans/tool-call.ts';
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
  /** Those of the messages that are in the request. */
  sentIn(request: Request): readonly unknown[];
  partOf(message: unknown): ConversationPart;
  /** The same request with another conversation. */
  withMessages(request: Request, messages: readonly unknown[]): Request;
  /** A message of the user's. */
  messageOf(text: string): object;
  /** The user's message, with `text` after what it says. */
  joined(message: unknown, text: string): unknown;
}

/** What the client has said since the model spoke last, as it has put it: questions, and what tools have returned. */
export function inputOf<Request extends WireRequest>(
  { sentIn, partOf }: Conversation<Request>,
  request: Request,
): readonly unknown[] {
  const sent = sentIn(request);
  const isModels = (message: unknown) => partOf(message).kind === 'model';
  // An answer that the client has begun itself belongs to what it says.
  return sent.slice(sent.slice(0, -1).findLastIndex(isModels) + 1);
}

/** What a message says that stands for something a summary cannot have. */
export const stoodFor = (type: unknown): string => `[${String(type)}]`;

/** As it is written in a request, whatever it is. */
export const written = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);

/** An instruction to the model besides the client's request: the same text on every wire, in the form of the wire. */
export interface Notice {
  /** `instructions`: with those of the client. `tool_results`: after the last tool result. */
  readonly place: 'instructions' | 'tool_results';
  readonly text: string;
}

/**
 * How a notice is put. `added`: as the wire has a place for it. `joined`: as part of something that the client sends,
 * because some chat templates refuse a second system message, and some a user message after a tool result.
 * `left_out`: not at all.
 */
export const FORMS = ['added', 'joined', 'left_out'] as const;
export type Form = (typeof FORMS)[number];

/** A call of which a request has nothing but the result: its provider keeps the conversation. */
interface KeptCall {
  readonly id: string;
  /** The answer that the request continues from, if it names it. */
  readonly answer: string | undefined;
}

/** A call whose result a request brings. */
export type AnsweredCall = SettledCall | KeptCall;

/** How notices are added to the requests of one wire. The fields of a request are unchecked: the client wrote them. */
export interface WireNotices {
  /** The calls of the latest turn whose results the request brings. */
  answeredCalls(request: Fields): readonly AnsweredCall[];
  /**
   * The request with what the notice says; the rest of it is as it was. `asked`: what the client has sent, where the request has
   * more than that.
   */
  withNotice(request: Fields, notice: Notice, form: Exclude<Form, 'left_out'>, asked?: Fields): Fields;
}

/** Content with one more text; `undefined` for what has no room for it. `type`: of a part that is text. */
export function withText(content: unknown, text: string, type: string): unknown {
  if (typeof content === 'string') return content === '' ? text : `${content}\n\n${text}`;
  if (Array.isArray(content)) return [...(content as unknown[]), { type, text }];
  return undefined;
}

type Message = Readonly<Record<string, unknown>>;

/** The last answer of the model in a conversation, and what its client has said since. */
interface LatestTurn {
  readonly answer: Message | undefined;
  readonly since: readonly Message[];
}

/** Of messages that are whatever the client has put there. */
export function latestTurn(messages: unknown): LatestTurn {
  const all = Array.isArray(messages) ? messages.filter(isObject) : [];
  // An answer that the client has begun itself comes after what it says.
  const end = all.at(-1)?.role === 'assistant' ? all.length - 1 : all.length;
  const turn = all.slice(0, end).findLastIndex(({ role }) => role === 'assistant');
  return { answer: all[turn], since: all.slice(turn + 1, end) };
}
