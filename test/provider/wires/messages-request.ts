import { claudeContinues } from '../../../src/proxy/wires/dialects/model-families.ts';
import type { CompletionRequest, Message } from '../request.ts';
import { checkConversation } from './messages-conversation.ts';
import { refused } from './refused.ts';

interface Block {
  readonly type: string;
  readonly text?: string;
  readonly signature?: string;
}

interface MessagesBody {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content: string | readonly Block[] }[];
  readonly max_tokens: number;
  readonly stop_sequences?: readonly string[];
  readonly tools?: readonly unknown[];
  readonly stream?: boolean;
  readonly thinking?: { readonly type: string; readonly budget_tokens?: number };
}

/** The API refuses every other field. */
const FIELDS: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'max_tokens',
  'stop_sequences',
  'stream',
  'thinking',
  'system',
  'tools',
  'tool_choice',
  'metadata',
  'temperature',
  'top_p',
  'top_k',
  'service_tier',
  'output_config',
  'container',
  // From a beta that Claude Code uses.
  'context_management',
]);

/**
 * A `/v1/messages` request as a chat request; `null` if it isn't one. Throws if the API would refuse the request, which
 * the client had sent in a form that the API accepts.
 */
export function messagesRequest(body: unknown): CompletionRequest | null {
  if (typeof body !== 'object' || body === null) return null;
  const { model, messages } = body as Partial<MessagesBody>;
  if (typeof model !== 'string' || !Array.isArray(messages)) return null;
  const request = body as MessagesBody;
  refuse(request);
  return {
    model,
    messages: request.messages.map(({ role, content }): Message => ({ role, content: textIn(content) })),
    stream: request.stream === true,
    stream_options: { include_usage: true },
    max_tokens: request.max_tokens,
    ...(request.stop_sequences && { stop: request.stop_sequences }),
    ...(request.tools && { tools: request.tools }),
  };
}

function refuse(request: MessagesBody): void {
  const { model, messages, max_tokens, thinking } = request;
  const complain = (what: string): never => {
    throw refused(what);
  };
  const unknown = Object.keys(request).find((field) => !FIELDS.has(field));
  if (unknown !== undefined) complain(`${unknown}: Extra inputs are not permitted`);
  if (!(Number.isInteger(max_tokens) && max_tokens >= 1)) complain(`max_tokens: ${max_tokens}`);
  const thinks = thinking !== undefined && thinking.type !== 'disabled';
  if (thinks && (thinking.budget_tokens ?? 0) >= max_tokens)
    complain('max_tokens must be greater than thinking.budget_tokens');
  checkConversation(request);
  for (const { content } of messages) {
    for (const block of typeof content === 'string' ? [] : content) {
      if (block.type === 'thinking' && !block.signature) complain('thinking.signature: Field required');
    }
  }
  const last = messages.at(-1);
  if (last?.role !== 'assistant') return;
  if (model.includes('claude') && !claudeContinues(model)) complain('must end with a user message');
  if (/\s$/.test(textIn(last.content)))
    complain('final assistant content cannot end with trailing whitespace');
  if (thinks)
    complain('when thinking is enabled, a final assistant message must start with a thinking block');
  const hasThoughts =
    typeof last.content !== 'string' && last.content.some(({ type }) => type === 'thinking');
  if (hasThoughts) complain('when thinking is disabled, the final assistant message cannot contain thinking');
}

const textIn = (content: string | readonly Block[]): string =>
  typeof content === 'string' ? content : content.map(({ text }) => text ?? '').join('');
