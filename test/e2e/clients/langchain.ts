import type { AIMessageChunk } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { API_KEY, type ChatClient, functionTools } from './chat-client.ts';

export function langchain(baseURL: string, fetch?: typeof globalThis.fetch): ChatClient {
  return {
    name: '@langchain/openai',
    async ask({ model, content, tools }) {
      const chat = new ChatOpenAI({
        model,
        apiKey: API_KEY,
        maxRetries: 0,
        configuration: { baseURL, fetch },
      });
      const runnable = tools.length > 0 ? chat.bindTools(functionTools(tools)) : chat;
      let message: AIMessageChunk | undefined;
      for await (const chunk of await runnable.stream(content)) message = message?.concat(chunk) ?? chunk;
      if (!message) throw new Error('the stream was empty');
      const { tool_calls = [], invalid_tool_calls = [], usage_metadata, response_metadata } = message;
      if (invalid_tool_calls.length > 0) {
        throw new Error(`invalid tool calls: ${JSON.stringify(invalid_tool_calls)}`);
      }
      return {
        text: message.text,
        reasoning: message.additional_kwargs.reasoning_content as string | undefined,
        toolCalls: tool_calls.map(({ id, name, args }) => ({ id, name, arguments: args })),
        finish: response_metadata.finish_reason as string,
        usage: usage_metadata,
      };
    },
  };
}
