import { isObject } from '../../json.ts';
import { nudgeText } from '../../plans/continuation.ts';
import type { Continuation, ContinuationFacts } from './continuation.ts';
import type { MessageParam, MessagesRequest } from './messages-request.ts';

/** Providers take no smaller budget. */
const THINKING_TOKENS_MIN = 1024;

/** The request that asks for the rest of the answer. Only ever appends: a provider's prompt cache stays warm. */
export function messagesContinuationOf(
  facts: ContinuationFacts<MessagesRequest>,
): Continuation<MessagesRequest> {
  const { request, mode, prefix, sealed, cutTools } = facts;
  const left = Math.max(1, facts.tokens_left);
  const limit = typeof request.max_tokens === 'number' ? { max_tokens: left } : {};
  const text = { type: 'text', text: prefix.sent };
  switch (mode) {
    case 'prefill':
      // Thinking and a prefill exclude each other, and without it no thoughts may come last.
      return {
        body: {
          ...request,
          ...limit,
          ...withoutThinking(request),
          messages: withAssistant(request.messages, [text]),
        },
        added_messages: [prefix.sent.length],
      };
    case 'nudge': {
      const hasTools = (request.tools ?? []).length > 0;
      const nudge = nudgeText({ prefix: prefix.sent, hasTools, cutTools });
      const thinking = thinkingWithin(left, request);
      const thoughts = isDisabled(thinking.thinking) ? [] : sealed;
      return {
        body: {
          ...request,
          ...limit,
          ...thinking,
          messages: [
            ...withAssistant(request.messages, [...thoughts, text]),
            { role: 'user', content: nudge },
          ],
        },
        added_messages: [prefix.sent.length, nudge.length],
      };
    }
    default:
      return { body: request, added_messages: [] };
  }
}

/** A client's own prefill and our partial are one turn. */
function withAssistant(messages: readonly MessageParam[], partial: readonly object[]): MessageParam[] {
  const last = messages.at(-1);
  if (last?.role !== 'assistant') return [...messages, { role: 'assistant', content: contentOf(partial) }];
  const begun =
    typeof last.content === 'string' ? [{ type: 'text', text: last.content }] : blocksOf(last.content);
  return [...messages.slice(0, -1), { ...last, content: contentOf(joined([...begun, ...partial])) }];
}

/** Text is text, however it came to be. */
function contentOf(blocks: readonly object[]): unknown {
  const [first] = blocks;
  return blocks.length === 1 && isText(first) && Object.keys(first).length === 2 ? first.text : blocks;
}

/** The text that goes on with the text before it, as one block. */
function joined(blocks: readonly object[]): readonly object[] {
  const [before, last] = blocks.slice(-2);
  if (!isText(before) || !isText(last)) return blocks;
  return [...blocks.slice(0, -2), { ...before, text: before.text + last.text }];
}

const blocksOf = (content: unknown): readonly object[] =>
  Array.isArray(content) ? content.filter(isObject) : [];

const isText = (block: unknown): block is { readonly type: 'text'; readonly text: string } =>
  isObject(block) && block.type === 'text' && typeof block.text === 'string';

const isDisabled = (thinking: unknown): boolean => isObject(thinking) && thinking.type === 'disabled';

const withoutThinking = ({ thinking }: MessagesRequest): object =>
  isObject(thinking) ? { thinking: { type: 'disabled' } } : {};

/** Thinking as it was asked for, or less of it where its budget was within the limit and no longer is. */
function thinkingWithin(left: number, request: MessagesRequest): { readonly thinking?: unknown } {
  const { thinking, max_tokens } = request;
  if (!isObject(thinking) || typeof max_tokens !== 'number') return {};
  const { budget_tokens } = thinking;
  if (typeof budget_tokens !== 'number' || budget_tokens >= max_tokens || budget_tokens < left) return {};
  const share = Math.floor((left * budget_tokens) / max_tokens);
  if (share < THINKING_TOKENS_MIN) return { thinking: { type: 'disabled' } };
  return { thinking: { ...thinking, budget_tokens: share } };
}
