import { ChatAnthropic } from '@langchain/anthropic';
import { MAX_TOKENS, messagesTools } from './anthropic.ts';
import { API_KEY, type ChatClient } from './chat-client.ts';
import { streamedMessage } from './langchain.ts';

const FINISHES: Readonly<Record<string, string>> = { end_turn: 'stop', tool_use: 'tool_calls' };

/** The underlying SDK appends the version to the address. */
export const langchainAnthropic = (url: string, fetch?: typeof globalThis.fetch): ChatClient => ({
  name: '@langchain/anthropic',
  async ask({ model, content, tools }) {
    const chat = new ChatAnthropic({
      model,
      apiKey: API_KEY,
      anthropicApiUrl: url.replace(/\/v1$/, ''),
      maxTokens: MAX_TOKENS,
      maxRetries: 0,
      clientOptions: { fetch },
    });
    const runnable = tools.length > 0 ? chat.bindTools(messagesTools(tools)) : chat;
    const { answer, message } = await streamedMessage(runnable, content);
    const reason = message.additional_kwargs.stop_reason ?? message.response_metadata.stop_reason;
    if (typeof reason !== 'string') throw new Error('the message has no end');
    const blocks = Array.isArray(message.content) ? message.content : [];
    const thoughts = blocks.filter((block) => block.type === 'thinking');
    return {
      ...answer,
      reasoning: thoughts.map(({ thinking }) => String(thinking)).join(''),
      finish: FINISHES[reason] ?? reason,
    };
  },
});
