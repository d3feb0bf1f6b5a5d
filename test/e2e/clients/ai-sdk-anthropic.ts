import { createAnthropic } from '@ai-sdk/anthropic';
import { askModel } from './ai-sdk.ts';
import { MAX_TOKENS } from './anthropic.ts';
import { API_KEY, type ChatClient } from './chat-client.ts';

export function aiSdkAnthropic(baseURL: string, fetch?: typeof globalThis.fetch): ChatClient {
  const provider = createAnthropic({ baseURL, apiKey: API_KEY, ...(fetch && { fetch }) });
  return {
    name: 'ai with @ai-sdk/anthropic',
    ask: (question) => askModel(provider(question.model), question, { maxOutputTokens: MAX_TOKENS }),
  };
}
