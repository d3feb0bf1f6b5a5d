import OpenAI from 'openai';
import { TOOLS } from '../answer.ts';
import type { Question } from './client.ts';

export async function askChat(question: Question): Promise<void> {
  const { gateway, prompt, stream, has_tools, signal, screen } = question;
  const client = new OpenAI({
    baseURL: `${gateway.root}/v1`,
    apiKey: gateway.api_key,
    defaultHeaders: gateway.headers.chat,
    fetch: question.fetch,
    maxRetries: 0,
  });
  const tools = Object.entries(TOOLS).map(([name, parameters]) => ({
    type: 'function' as const,
    function: { name, parameters },
  }));
  const body = {
    model: gateway.models.chat,
    messages: [{ role: 'user' as const, content: prompt }],
    ...(has_tools && { tools }),
  };
  if (!stream) {
    const { choices } = await client.chat.completions.create(body, { signal });
    const choice = choices[0];
    screen.text(choice?.message.content);
    for (const [at, call] of (choice?.message.tool_calls ?? []).entries())
      if (call.type === 'function') screen.call(at, call.function.name, call.function.arguments);
    screen.finish = choice?.finish_reason;
    return;
  }
  for await (const { choices } of await client.chat.completions.create({ ...body, stream }, { signal })) {
    const choice = choices[0];
    screen.text(choice?.delta?.content);
    for (const { index, function: call } of choice?.delta?.tool_calls ?? [])
      screen.call(index, call?.name, call?.arguments);
    screen.finish = choice?.finish_reason ?? screen.finish;
  }
}
