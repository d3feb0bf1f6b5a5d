import { isObject } from '../../../lib/json.ts';
import type { Saying } from '../../../plans/compression.ts';
import type { SettledCall } from '../../../plans/tool-call.ts';
import {
  type Conversation,
  type ConversationPart,
  latestTurn,
  stoodFor,
  type WireNotices,
  withText,
  written,
} from '../common/conversation.ts';
import type { ChatMessage, ChatRequest } from '../common/request.ts';

/**
 * The messages of a chat. Calls of the legacy `functions` interface have no id, so a result belongs to the call before
 * it.
 */
export const chatConversation: Conversation<ChatRequest> = {
  messagesOf: ({ messages }) => messages,
  sentIn: ({ messages }) => messages,
  partOf: (message) => partOf(message as ChatMessage),
  withMessages: (request, messages) => ({ ...request, messages: messages as ChatMessage[] }),
  messageOf: (text) => ({ role: 'user', content: text }),
  joined(message, text) {
    const { content, ...rest } = message as ChatMessage;
    if (Array.isArray(content)) return { ...rest, content: [...content, { type: 'text', text }] };
    return { ...rest, content: `${written(content)}\n\n${text}` };
  },
};

function partOf(message: ChatMessage): ConversationPart {
  const { role, name, tool_call_id } = message;
  const text = textOf(message.content);
  switch (role) {
    case 'user':
      return { kind: 'user', calls: [], results: [], sayings: [{ label: 'user', text }] };
    case 'tool':
      return resultOf(written(tool_call_id), text);
    case 'function':
      return resultOf(legacyId(name), text);
    case 'assistant':
      return answerOf(message, text);
    default:
      return { kind: 'pinned', calls: [], results: [], sayings: [] };
  }
}

const resultOf = (id: string, text: string): ConversationPart => ({
  kind: 'result',
  calls: [],
  results: [id],
  sayings: [{ label: `result of ${id}`, text, isOutput: true }],
});

function answerOf({ tool_calls, function_call }: ChatMessage, text: string): ConversationPart {
  const said: Saying[] = text === '' ? [] : [{ label: 'assistant', text }];
  const calls = (Array.isArray(tool_calls) ? tool_calls.filter(isObject) : []).map((call) => {
    const { name, arguments: json } = isObject(call.function) ? call.function : {};
    return { id: written(call.id), name, json };
  });
  if (isObject(function_call)) {
    const { name, arguments: json } = function_call;
    calls.push({ id: legacyId(name), name, json });
  }
  const sayings = calls.map(({ id, name, json }) => ({
    label: `assistant calls ${written(name)} as ${id}`,
    text: written(json),
  }));
  return { kind: 'model', calls: calls.map(({ id }) => id), results: [], sayings: [...said, ...sayings] };
}

const legacyId = (name: unknown): string => `function ${written(name)}`;

function textOf(content: unknown): string {
  if (!Array.isArray(content)) return content === null ? '' : written(content);
  return content
    .map((part: unknown) => {
      if (!isObject(part)) return '';
      return typeof part.text === 'string' ? part.text : stoodFor(part.type);
    })
    .join('\n');
}

/** Notices as separate messages: after the leading system and developer messages, or after the last tool result. */
export const chatNotices: WireNotices = {
  answeredCalls({ messages }) {
    const { answer, since } = latestTurn(messages);
    const results = since.filter(({ role }) => role === 'tool');
    const ids = new Set(results.map(({ tool_call_id }) => tool_call_id));
    const calls = answer?.tool_calls;
    return (Array.isArray(calls) ? calls : [])
      .filter(isCall)
      .filter(({ id }) => ids.has(id))
      .map(({ id, function: { name, arguments: text } }): SettledCall => ({ id, name, arguments: text }));
  },

  withNotice(request, { place, text }, form) {
    if (!Array.isArray(request.messages)) return request;
    const messages: readonly unknown[] = request.messages;
    const index = place === 'instructions' ? instructionsEnd(messages) : toolResultsEnd(messages);
    const before = messages[index - 1];
    if (place === 'tool_results' && !before) return request;
    const content =
      form === 'joined' && isObject(before) ? withText(before.content, text, 'text') : undefined;
    if (isObject(before) && content !== undefined)
      return { ...request, messages: messages.with(index - 1, { ...before, content }) };
    // If the client uses `developer`, its model may accept instructions in no other role.
    const role = place === 'tool_results' ? 'user' : roleOf(before) === 'developer' ? 'developer' : 'system';
    return { ...request, messages: messages.toSpliced(index, 0, { role, content: text }) };
  },
};

function instructionsEnd(messages: readonly unknown[]): number {
  const end = messages.findIndex((message) => !['system', 'developer'].includes(String(roleOf(message))));
  return end === -1 ? messages.length : end;
}

const toolResultsEnd = (messages: readonly unknown[]): number =>
  messages.findLastIndex((message) => roleOf(message) === 'tool') + 1;

const roleOf = (message: unknown): unknown => (isObject(message) ? message.role : undefined);

interface Call {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

function isCall(call: unknown): call is Call {
  if (!isObject(call) || typeof call.id !== 'string' || !isObject(call.function)) return false;
  return typeof call.function.name === 'string' && typeof call.function.arguments === 'string';
}
