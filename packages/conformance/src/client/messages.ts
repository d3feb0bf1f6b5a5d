import Anthropic from '@anthropic-ai/sdk';
import { TOOLS } from '../answer.ts';
import type { Question } from './client.ts';

const ANSWER_TOKENS_MAX = 4096;

const FINISHES: Readonly<Record<string, string>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  tool_use: 'tool_calls',
  max_tokens: 'length',
  refusal: 'content_filter',
};

const finishOf = (reason: string): string => FINISHES[reason] ?? reason;

export async function askMessages(question: Question): Promise<void> {
  const { gateway, prompt, stream, has_tools, signal, screen } = question;
  const client = new Anthropic({
    baseURL: gateway.root,
    apiKey: gateway.api_key,
    defaultHeaders: gateway.headers.messages,
    fetch: question.fetch,
    maxRetries: 0,
  });
  const tools = Object.entries(TOOLS).map(([name, input_schema]) => ({ name, input_schema }));
  const body = {
    model: gateway.models.messages,
    max_tokens: ANSWER_TOKENS_MAX,
    messages: [{ role: 'user' as const, content: prompt }],
    ...(has_tools && { tools }),
  };
  if (!stream) {
    const { content, stop_reason } = await client.messages.create(body, { signal });
    for (const [at, block] of content.entries())
      if (block.type === 'text') screen.text(block.text);
      else if (block.type === 'tool_use') screen.call(at, block.name, JSON.stringify(block.input));
    if (stop_reason) screen.finish = finishOf(stop_reason);
    return;
  }
  for await (const event of await client.messages.create({ ...body, stream }, { signal })) {
    if (event.type === 'content_block_start' && event.content_block.type === 'tool_use')
      screen.call(event.index, event.content_block.name, '');
    if (event.type === 'content_block_start' && event.content_block.type === 'text')
      screen.text(event.content_block.text);
    if (event.type === 'content_block_delta' && event.delta.type === 'text_delta')
      screen.text(event.delta.text);
    if (event.type === 'content_block_delta' && event.delta.type === 'input_json_delta')
      screen.call(event.index, undefined, event.delta.partial_json);
    if (event.type === 'message_delta' && event.delta.stop_reason)
      screen.finish = finishOf(event.delta.stop_reason);
  }
}
