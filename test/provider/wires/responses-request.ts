import type { CompletionRequest, Message } from '../request.ts';
import { checkInput } from './responses-input.ts';

interface Body {
  readonly model?: unknown;
  readonly input?: unknown;
  readonly instructions?: unknown;
  readonly max_output_tokens?: number | null;
  readonly tools?: readonly unknown[] | null;
  readonly stream?: boolean | null;
  readonly background?: unknown;
  readonly store?: unknown;
}

/**
 * A `/v1/responses` request as a chat request; `null` if it isn't one. Throws if the API would refuse the request,
 * which the client had sent in a form that the API accepts.
 */
export function responsesRequest(body: unknown): CompletionRequest | null {
  if (typeof body !== 'object' || body === null) return null;
  const { model, input, instructions, max_output_tokens, tools, stream, background, store }: Body = body;
  if (typeof model !== 'string') return null;
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  if (!Array.isArray(items)) return null;
  checkInput({ ...body });
  const system: Message[] =
    typeof instructions === 'string' ? [{ role: 'system', content: instructions }] : [];
  return {
    model,
    stream: stream ?? null,
    // Responses always report usage.
    stream_options: { include_usage: true },
    ...(typeof max_output_tokens === 'number' && { max_tokens: max_output_tokens }),
    ...(tools && { tools }),
    background: background === true && store !== false,
    messages: [...system, ...items.map(messageOf)],
  };
}

/** Calls and their results are separate items. */
function messageOf(item: Partial<Message> & { readonly type?: string; readonly output?: unknown }): Message {
  if (item.type === 'function_call') return { role: 'assistant', content: '' };
  if (item.type === 'function_call_output') return { role: 'tool', content: item.output };
  return { role: item.role ?? 'assistant', content: item.content };
}
