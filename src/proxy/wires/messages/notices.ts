import { isObject } from '../../../lib/json.ts';
import type { Fields } from '../../../lib/json-body.ts';
import type { SettledCall } from '../../../plans/tool-call.ts';
import { latestTurn, type WireNotices, withText } from '../common/notices.ts';

type Block = Readonly<Record<string, unknown>>;

/**
 * Instructions are the end of `system`, or of the first thing the user says: a conversation takes no other role. What
 * belongs to tool results is a block after them in their own message, which they must begin, or the end of the last one.
 * What the client has put there stays as it was up to that place, for the provider's prompt cache.
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

  withNotice(request, { place, text }, form) {
    if (place === 'tool_results') return withHint(request, text, form);
    const told = form === 'joined' ? withFirstTurn(request, text) : undefined;
    return told ?? { ...request, system: withText(request.system ?? '', text, 'text') ?? request.system };
  },
};

function withFirstTurn(request: Fields, text: string): Fields | undefined {
  const messages = messagesOf(request);
  const index = messages.findIndex((message) => isObject(message) && message.role === 'user');
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

/** None where the content is a string. */
function blocksOf(message: unknown): readonly Block[] {
  const content = contentOf(message);
  return Array.isArray(content) ? (content as Block[]) : [];
}

const isResult = (block: unknown): boolean => isObject(block) && block.type === 'tool_result';

function isCall(block: unknown): block is { id: string; name: string; input?: unknown } {
  if (!isObject(block) || block.type !== 'tool_use') return false;
  return typeof block.id === 'string' && typeof block.name === 'string';
}
