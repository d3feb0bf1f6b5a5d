import { isObject } from '../../../lib/json.ts';
import type { Fields } from '../../../lib/json-body.ts';
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
import type { MessageParam, MessagesRequest } from './request.ts';

/**
 * Messages made of content blocks. Tool results are blocks in user messages; instructions are separate from messages.
 */
export const messagesConversation: Conversation<MessagesRequest> = {
  messagesOf: ({ messages }) => messages,
  sentIn: ({ messages }) => messages,
  partOf: (message) => partOf(message as MessageParam),
  withMessages: (request, messages) => ({ ...request, messages: messages as MessageParam[] }),
  messageOf: (text) => ({ role: 'user', content: text }),
  joined(message, text) {
    const { content, ...rest } = message as MessageParam;
    return { ...rest, content: [...asBlocks(content), { type: 'text', text }] };
  },
};

type Block = Readonly<Record<string, unknown>>;

function asBlocks(content: unknown): readonly Block[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  return Array.isArray(content) ? content.filter(isObject) : [];
}

function partOf({ role, content }: MessageParam): ConversationPart {
  const blocks = asBlocks(content);
  const calls = blocks.filter(usesTool).map(({ id }) => written(id));
  const results = blocks.filter(answersUse).map(({ tool_use_id }) => written(tool_use_id));
  const sayings = blocks.flatMap((block) => sayingOf(role, block));
  if (role === 'assistant') return { kind: 'model', calls, results, sayings };
  if (role !== 'user') return { kind: 'pinned', calls, results, sayings };
  return { kind: blocks.length > 0 && blocks.every(answersUse) ? 'result' : 'user', calls, results, sayings };
}

/** Uses of client tools and of provider tools. */
const usesTool = ({ type }: Block): boolean => typeof type === 'string' && type.endsWith('tool_use');

const answersUse = ({ tool_use_id }: Block): boolean => tool_use_id !== undefined;

/** Reasoning is left out: it isn't part of the conversation, and usually encrypted. */
function sayingOf(role: string, block: Block): Saying[] {
  const { type, text, id, name, input, content, tool_use_id } = block;
  if (type === 'thinking' || type === 'redacted_thinking') return [];
  if (usesTool(block))
    return [{ label: `${role} calls ${written(name)} as ${written(id)}`, text: written(input) }];
  if (answersUse(block))
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

/**
 * Instructions are appended to the last user message: conversations support no other role, and a changed `system` would
 * make the provider read all messages without its prompt cache. If the provider refuses that, they are appended to
 * `system`. Hints about tool results become a block after the results in the same message, which must begin with them,
 * or part of the last result. The client's content before that place stays unchanged.
 */
export const messagesNotices: WireNotices = {
  answeredCalls({ messages }) {
    const { answer, since } = latestTurn(messages);
    const results = since.flatMap(blocksOf).filter(isResult);
    const ids = new Set(results.map(({ tool_use_id }) => tool_use_id));
    return blocksOf(answer)
      .filter(isCall)
      .filter(({ id }) => ids.has(id))
      .map(({ id, name, input = {} }): SettledCall => ({ id, name, arguments: JSON.stringify(input) }));
  },

  withNotice(request, { place, text }, form, asked = request) {
    if (place === 'tool_results') return withHint(request, text, form);
    const told = form === 'added' ? withLastTurn(request, text, asked) : undefined;
    return told ?? { ...request, system: withText(request.system ?? '', text, 'text') ?? request.system };
  },
};

/** A continuation ends with a message of our own, which must not carry the notice. */
function withLastTurn(request: Fields, text: string, asked: Fields): Fields | undefined {
  const messages = messagesOf(request);
  const last = messagesOf(asked).findLast((message) => isObject(message) && message.role === 'user');
  if (last === undefined) return undefined;
  const turn = JSON.stringify(last);
  const index = messages.findLastIndex((message) => JSON.stringify(message) === turn);
  const content = withText(contentOf(messages[index]), text, 'text');
  return content === undefined ? undefined : withContent(request, index, content);
}

function withHint(request: Fields, text: string, form: 'added' | 'joined'): Fields {
  const messages = messagesOf(request);
  const index = messages.findLastIndex((message) => blocksOf(message).some(isResult));
  const blocks = blocksOf(messages[index]);
  const last = blocks.findLastIndex(isResult);
  const result = blocks[last];
  if (!result) return request;
  const joined = form === 'joined' ? withText(result.content ?? '', text, 'text') : undefined;
  return joined === undefined
    ? withContent(request, index, blocks.toSpliced(last + 1, 0, { type: 'text', text }))
    : withContent(request, index, blocks.with(last, { ...result, content: joined }));
}

function withContent(request: Fields, index: number, content: unknown): Fields {
  const messages = messagesOf(request);
  return { ...request, messages: messages.with(index, { ...(messages[index] as object), content }) };
}

const messagesOf = ({ messages }: Fields): readonly unknown[] => (Array.isArray(messages) ? messages : []);

const contentOf = (message: unknown): unknown => (isObject(message) ? message.content : undefined);

/** Empty if the content is a string. */
function blocksOf(message: unknown): readonly Block[] {
  const content = contentOf(message);
  return Array.isArray(content) ? (content as Block[]) : [];
}

const isResult = (block: unknown): boolean => isObject(block) && block.type === 'tool_result';

function isCall(block: unknown): block is { id: string; name: string; input?: unknown } {
  if (!isObject(block) || block.type !== 'tool_use') return false;
  return typeof block.id === 'string' && typeof block.name === 'string';
}
