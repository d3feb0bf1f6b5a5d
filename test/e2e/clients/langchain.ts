import type { AIMessageChunk } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { type Answer, API_KEY, type ChatClient, functionTools } from './chat-client.ts';

export function langchain(baseURL: string, fetch?: typeof globalThis.fetch): ChatClient {
  return {
    name: '@langchain/openai',
    async ask({ model, content, tools, parameters }) {
      const chat = new ChatOpenAI({
        model,
        apiKey: API_KEY,
        maxRetries: 0,
        configuration: { baseURL, fetch },
        ...(parameters && { modelKwargs: parameters }),
      });
      const runnable = tools.length > 0 ? chat.bindTools(functionTools(tools)) : chat;
      const { answer, message } = await streamedMessage(runnable, content);
      return {
        ...answer,
        reasoning: message.additional_kwargs.reasoning_content as string | undefined,
        finish: message.response_metadata.finish_reason as string,
      };
    },
  };
}

/** A runnable that takes a question and streams the answer. */
interface Streaming {
  stream(content: string): Promise<AsyncIterable<AIMessageChunk>>;
}

/**
 * Asks, and merges the chunks as LangChain does. How to read the reasoning and the finish reason depends on the model.
 */
export async function streamedMessage(
  runnable: Streaming,
  content: string,
): Promise<{ answer: Omit<Answer, 'reasoning' | 'finish'>; message: AIMessageChunk }> {
  let message: AIMessageChunk | undefined;
  for await (const chunk of await runnable.stream(content)) message = message?.concat(chunk) ?? chunk;
  if (!message) throw new Error('the stream was empty');
  const { tool_calls = [], invalid_tool_calls = [], usage_metadata, text } = message;
  if (invalid_tool_calls.length > 0)
    throw new Error(`invalid tool calls: ${JSON.stringify(invalid_tool_calls)}`);
  const toolCalls = tool_calls.map(({ id, name, args }) => ({ id, name, arguments: args }));
  return { answer: { text, toolCalls, usage: usage_metadata }, message };
}
