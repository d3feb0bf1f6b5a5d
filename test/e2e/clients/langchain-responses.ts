import { ChatOpenAI } from '@langchain/openai';
import { API_KEY, type ChatClient, functionTools } from './chat-client.ts';
import { streamedMessage } from './langchain.ts';

/** The same class as for chat completions, set to use the Responses API. */
export const langchainResponses = (baseURL: string, fetch?: typeof globalThis.fetch): ChatClient => ({
  name: '@langchain/openai, responses',
  tellsCutThoughts: true,
  async ask({ model, content, tools }) {
    const configuration = { baseURL, fetch };
    const chat = new ChatOpenAI({
      model,
      apiKey: API_KEY,
      maxRetries: 0,
      useResponsesApi: true,
      configuration,
    });
    const runnable = tools.length > 0 ? chat.bindTools(functionTools(tools)) : chat;
    const { answer, message } = await streamedMessage(runnable, content);
    const { status } = message.response_metadata;
    if (status !== 'completed') throw new Error(`the response is ${status}`);
    const { reasoning } = message.additional_kwargs as { reasoning?: { summary?: { text: string }[] } };
    return {
      ...answer,
      reasoning: (reasoning?.summary ?? []).map(({ text }) => text).join(''),
      finish: answer.toolCalls.length > 0 ? 'tool_calls' : 'stop',
    };
  },
});
