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
 * A request on `/v1/responses` in the terms of a chat; `null` for what is none. Throws where the API would refuse what
 * a proxy has made of a request that it takes.
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
    // Its answers are never without a report.
    stream_options: { include_usage: true },
    ...(typeof max_output_tokens === 'number' && { max_tokens: max_output_tokens }),
    ...(tools && { tools }),
    background: background === true && store !== false,
    messages: [...system, ...items.map(messageOf)],
  };
}

/** Calls and their results are items of their own. */
function messageOf(item: Partial<Message> & { readonly type?: string; readonly output?: unknown }): Message {
  if (item.type === 'function_call') return { role: 'assistant', content: '' };
  if (item.type === 'function_call_output') return { role: 'tool', content: item.output };
  return { role: item.role ?? 'assistant', content: item.content };
}
