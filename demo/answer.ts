import OpenAI from 'openai';
import { type Act, TOOLS } from './acts.ts';

/** What an application has in the end. */
export interface Answer {
  readonly text: string;
  readonly calls: readonly Call[];
  readonly finish: string;
  readonly usage: object | undefined;
  /** The longest time between two pieces of content, in milliseconds. */
  readonly silence_ms: number;
}

export interface Call {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** Told what comes, as it comes. */
export interface Audience {
  text(text: string): void;
  call(call: Call): void;
}

/** Asks with the plain SDK; where the answer comes from is decided by `base_url` alone. */
export async function ask(base_url: string, { model, question }: Act, audience?: Audience): Promise<Answer> {
  const client = new OpenAI({ baseURL: base_url, apiKey: 'demo', maxRetries: 0 });
  const stream = client.chat.completions.stream({
    model,
    messages: [{ role: 'user', content: question }],
    tools: TOOLS,
    stream_options: { include_usage: true },
  });
  let heard_ms: number | undefined;
  let silence_ms = 0;
  for await (const { choices } of stream) {
    const delta = choices[0]?.delta;
    if (!delta?.content && !delta?.tool_calls) continue;
    const now_ms = performance.now();
    silence_ms = Math.max(silence_ms, now_ms - (heard_ms ?? now_ms));
    heard_ms = now_ms;
    if (delta.content) audience?.text(delta.content);
  }
  const { choices, usage } = await stream.finalChatCompletion();
  const [choice] = choices;
  if (!choice) throw new Error('the answer has no choice');
  const calls = (choice.message.tool_calls ?? []).map(({ id, function: { name, arguments: text } }) => ({
    id,
    name,
    arguments: text,
  }));
  for (const call of calls) audience?.call(call);
  return { text: choice.message.content ?? '', calls, finish: choice.finish_reason, usage, silence_ms };
}
