import { isObject } from '../../../lib/json.ts';
import type { Saying } from '../../../plans/compression.ts';
import { type Conversation, type ConversationPart, stoodFor, written } from '../common/conversation.ts';
import type { ChatMessage, ChatRequest } from '../common/request.ts';

/** The messages of a chat. Calls of the legacy `functions` interface have no id: a result follows its call. */
export const chatConversation: Conversation<ChatRequest> = {
  messagesOf: ({ messages }) => messages,
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
