import { isObject } from '../../json.ts';

type Message = Readonly<Record<string, unknown>>;

/** What the model is told besides what its client sends. */
export interface Notice {
  /** `instructions`: after the leading system and developer messages. `tool_results`: after the last tool result. */
  readonly place: 'instructions' | 'tool_results';
  readonly text: string;
}

/**
 * How a notice is put. `added`: a message of its own. `joined`: part of the message before its place, because some
 * chat templates refuse a second system message, and some a user message after a tool result. `left_out`: not at all.
 */
export const FORMS = ['added', 'joined', 'left_out'] as const;
export type Form = (typeof FORMS)[number];

/** The request with what the notices say; the rest of it is as it was. */
export function withNotices(
  request: Readonly<Record<string, unknown>>,
  notices: readonly Notice[],
  form: Form,
): Readonly<Record<string, unknown>> {
  if (form === 'left_out' || !Array.isArray(request.messages)) return request;
  let messages = request.messages as readonly unknown[];
  for (const notice of notices) messages = withNotice(messages, notice, form);
  return { ...request, messages };
}

function withNotice(
  messages: readonly unknown[],
  { place, text }: Notice,
  form: 'added' | 'joined',
): readonly unknown[] {
  const index = place === 'instructions' ? instructionsEnd(messages) : toolResultsEnd(messages);
  const before = messages[index - 1];
  const joined = form === 'joined' && isObject(before) ? withText(before, text) : undefined;
  if (joined) return messages.with(index - 1, joined);
  // Whoever gives instructions as `developer` talks to a model that takes them from nobody else.
  const role = place === 'tool_results' ? 'user' : roleOf(before) === 'developer' ? 'developer' : 'system';
  return messages.toSpliced(index, 0, { role, content: text });
}

function instructionsEnd(messages: readonly unknown[]): number {
  const end = messages.findIndex((message) => !['system', 'developer'].includes(String(roleOf(message))));
  return end === -1 ? messages.length : end;
}

const toolResultsEnd = (messages: readonly unknown[]): number =>
  messages.findLastIndex((message) => roleOf(message) === 'tool') + 1;

const roleOf = (message: unknown): unknown => (isObject(message) ? message.role : undefined);

/** `undefined` when the message has no content that text could be joined to. */
function withText(message: Message, text: string): Message | undefined {
  const { content } = message;
  if (typeof content === 'string') return { ...message, content: `${content}\n\n${text}` };
  if (Array.isArray(content)) return { ...message, content: [...content, { type: 'text', text }] };
  return undefined;
}
