import { isObject } from '../../../lib/json.ts';
import type { Saying } from '../../../plans/compression.ts';
import { type Conversation, type ConversationPart, stoodFor, written } from '../common/conversation.ts';
import type { MessageParam, MessagesRequest } from './request.ts';

/** Messages of content blocks. Results of calls are blocks in messages of the user; instructions are no message. */
export const messagesConversation: Conversation<MessagesRequest> = {
  messagesOf: ({ messages }) => messages,
  partOf: (message) => partOf(message as MessageParam),
  withMessages: (request, messages) => ({ ...request, messages: messages as MessageParam[] }),
  messageOf: (text) => ({ role: 'user', content: text }),
  joined(message, text) {
    const { content, ...rest } = message as MessageParam;
    return { ...rest, content: [...blocksOf(content), { type: 'text', text }] };
  },
};

type Block = Readonly<Record<string, unknown>>;

function blocksOf(content: unknown): readonly Block[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  return Array.isArray(content) ? content.filter(isObject) : [];
}

function partOf({ role, content }: MessageParam): ConversationPart {
  const blocks = blocksOf(content);
  const calls = blocks.filter(isCall).map(({ id }) => written(id));
  const results = blocks.filter(isResult).map(({ tool_use_id }) => written(tool_use_id));
  const sayings = blocks.flatMap((block) => sayingOf(role, block));
  if (role === 'assistant') return { kind: 'model', calls, results, sayings };
  if (role !== 'user') return { kind: 'pinned', calls, results, sayings };
  return { kind: blocks.length > 0 && blocks.every(isResult) ? 'result' : 'user', calls, results, sayings };
}

/** Of the client's tools, and of those that the provider runs. */
const isCall = ({ type }: Block): boolean => typeof type === 'string' && type.endsWith('tool_use');

const isResult = ({ tool_use_id }: Block): boolean => tool_use_id !== undefined;

/** Thoughts are nothing that was said, and mostly sealed. */
function sayingOf(role: string, block: Block): Saying[] {
  const { type, text, id, name, input, content, tool_use_id } = block;
  if (type === 'thinking' || type === 'redacted_thinking') return [];
  if (isCall(block))
    return [{ label: `${role} calls ${written(name)} as ${written(id)}`, text: written(input) }];
  if (isResult(block))
    return [{ label: `result of ${written(tool_use_id)}`, text: outputOf(content), isOutput: true }];
  return [{ label: role, text: typeof text === 'string' ? text : stoodFor(type) }];
}

const outputOf = (content: unknown): string =>
  Array.isArray(content)
    ? content
        .filter(isObject)
        .map((block) => (typeof block.text === 'string' ? block.text : stoodFor(block.type)))
        .join('\n')
    : written(content);
