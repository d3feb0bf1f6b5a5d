import OpenAI from 'openai';
import { TOOLS } from '../answer.ts';
import type { Question } from './client.ts';

/** As the events of its arguments name it. */
const keyOf = (call: OpenAI.Responses.ResponseFunctionToolCall): string => call.id ?? call.call_id;

export async function askResponses(question: Question): Promise<void> {
  const { gateway, prompt, stream, has_tools, signal, screen } = question;
  const client = new OpenAI({
    baseURL: `${gateway.root}/v1`,
    apiKey: gateway.api_key,
    defaultHeaders: gateway.headers.responses,
    fetch: question.fetch,
    maxRetries: 0,
  });
  const tools = Object.entries(TOOLS).map(([name, parameters]) => ({
    type: 'function' as const,
    name,
    parameters,
    strict: false,
  }));
  const body = {
    model: gateway.models.responses,
    input: [{ role: 'user' as const, content: prompt }],
    ...(has_tools && { tools }),
  };
  const end = (status: string | undefined) => {
    if (status === 'failed' || status === 'cancelled') screen.failed = true;
    else if (status === 'incomplete') screen.finish = 'length';
    else if (status === 'completed') screen.finish = screen.shown.calls.length > 0 ? 'tool_calls' : 'stop';
  };
  if (!stream) {
    const { output, status } = await client.responses.create(body, { signal });
    for (const [at, item] of output.entries()) {
      if (item.type === 'function_call') screen.call(at, item.name, item.arguments);
      if (item.type === 'message')
        for (const part of item.content) if (part.type === 'output_text') screen.text(part.text);
    }
    return end(status);
  }
  for await (const event of await client.responses.create({ ...body, stream }, { signal })) {
    switch (event.type) {
      case 'response.output_text.delta':
        screen.text(event.delta);
        break;
      case 'response.output_item.added':
        if (event.item.type !== 'function_call') break;
        screen.call(keyOf(event.item), event.item.name, event.item.arguments);
        break;
      case 'response.function_call_arguments.delta':
        screen.call(event.item_id, undefined, event.delta);
        break;
      case 'response.output_item.done':
        if (event.item.type === 'function_call') screen.closeCall(keyOf(event.item));
        break;
      case 'response.completed':
        screen.dropOpenCalls();
        end(event.response.status);
        break;
      case 'response.incomplete':
      case 'response.failed':
        end(event.response.status);
        break;
      case 'error':
        screen.failed = true;
        break;
    }
  }
}
