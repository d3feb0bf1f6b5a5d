import { createOpenAI } from '@ai-sdk/openai';
import {
  jsonSchema as jsonSchema5,
  streamText as streamText5,
  type ToolSet as ToolSet5,
  tool as tool5,
} from 'ai-5';
import { createOpenAI as createOpenAI5 } from 'ai-5-openai';
import {
  jsonSchema as jsonSchema6,
  streamText as streamText6,
  type ToolSet as ToolSet6,
  tool as tool6,
} from 'ai-6';
import { createOpenAI as createOpenAI6 } from 'ai-6-openai';
import { answerIn, askModel } from './ai-sdk.ts';
import { API_KEY, type ChatClient, type Question } from './chat-client.ts';

/** The provider's default, which is the Responses API. */
export function aiSdkResponses(baseURL: string, fetch?: typeof globalThis.fetch): ChatClient {
  const provider = createOpenAI({ baseURL, apiKey: API_KEY, ...(fetch && { fetch }) });
  return {
    name: 'ai with @ai-sdk/openai, responses',
    tellsCutThoughts: true,
    ask: (question) => askModel(provider(question.model), question),
  };
}

/** The stream reports its errors; by default, the SDK prints them as well. */
const QUIET = { maxRetries: 0, onError: () => {} } as const;

export function aiSdk5Responses(baseURL: string, fetch?: typeof globalThis.fetch): ChatClient {
  const provider = createOpenAI5({ baseURL, apiKey: API_KEY, ...(fetch && { fetch }) });
  const toolsOf = (asked: Question['tools']): ToolSet5 =>
    Object.fromEntries(
      asked.map(({ name, parameters }) => [name, tool5({ inputSchema: jsonSchema5({ ...parameters }) })]),
    );
  return {
    name: 'ai 5, responses',
    ask: ({ model, content, tools }) => {
      const asked = { model: provider(model), prompt: content, tools: toolsOf(tools) };
      return answerIn(streamText5({ ...asked, ...QUIET }).fullStream);
    },
  };
}

export function aiSdk6Responses(baseURL: string, fetch?: typeof globalThis.fetch): ChatClient {
  const provider = createOpenAI6({ baseURL, apiKey: API_KEY, ...(fetch && { fetch }) });
  const toolsOf = (asked: Question['tools']): ToolSet6 =>
    Object.fromEntries(
      asked.map(({ name, parameters }) => [name, tool6({ inputSchema: jsonSchema6({ ...parameters }) })]),
    );
  return {
    name: 'ai 6, responses',
    ask: ({ model, content, tools }) => {
      const asked = { model: provider(model), prompt: content, tools: toolsOf(tools) };
      return answerIn(streamText6({ ...asked, ...QUIET }).fullStream);
    },
  };
}
