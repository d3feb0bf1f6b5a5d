import { createOpenAI } from '@ai-sdk/openai';
import { askModel } from './ai-sdk.ts';
import { API_KEY, type ChatClient } from './chat-client.ts';

/** The provider's default, which is the Responses API. */
export function aiSdkResponses(baseURL: string, fetch?: typeof globalThis.fetch): ChatClient {
  const provider = createOpenAI({ baseURL, apiKey: API_KEY, ...(fetch && { fetch }) });
  return {
    name: 'ai with @ai-sdk/openai, responses',
    ask: (question) => askModel(provider(question.model), question),
  };
}
