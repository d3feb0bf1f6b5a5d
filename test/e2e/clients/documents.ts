import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import Anthropic from '@anthropic-ai/sdk';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, type LanguageModel } from 'ai';
import OpenAI from 'openai';
import { PROMPT_END } from '../../provider/request.ts';
import { toolSet } from './ai-sdk.ts';
import { messageRequestOf } from './anthropic.ts';
import { API_KEY, functionTools, type Question } from './chat-client.ts';
import { responsesTools } from './openai-responses.ts';
import { PythonProcess } from './python-process.ts';

/** One way to request an answer as a single document with one SDK. */
export interface DocumentClient {
  readonly name: string;
  readonly wire: 'chat_completions' | 'completions' | 'messages' | 'responses';
  /** What the application gets, without the fields that name the model and the time. Rejects with the SDK's error. */
  ask(question: Question): Promise<unknown>;
  close?(): Promise<void>;
}

/** `retries`: how many times the SDK retries by itself. */
export type ConnectForDocuments = (url: string, retries?: number) => DocumentClient;

const openai = (baseURL: string, maxRetries = 0) => new OpenAI({ baseURL, apiKey: API_KEY, maxRetries });

const chatRequest = ({ model, content, tools }: Question) => ({
  model,
  messages: [{ role: 'user' as const, content }],
  ...(tools.length > 0 && { tools: functionTools(tools) }),
});

export const openaiChat: ConnectForDocuments = (url, retries) => ({
  name: 'openai, chat.completions.create()',
  wire: 'chat_completions',
  ask: async (question) =>
    comparable(await openai(url, retries).chat.completions.create(chatRequest(question))),
});

export const openaiCompletion: ConnectForDocuments = (url, retries) => ({
  name: 'openai, completions.create()',
  wire: 'completions',
  ask: async ({ model, content }) =>
    comparable(await openai(url, retries).completions.create({ model, prompt: content + PROMPT_END })),
});

export const openaiResponse: ConnectForDocuments = (url, retries) => ({
  name: 'openai, responses.create()',
  wire: 'responses',
  async ask({ model, content, tools }) {
    const more = tools.length > 0 ? { tools: responsesTools(tools) } : {};
    return comparable(await openai(url, retries).responses.create({ model, input: content, ...more }));
  },
});

export const anthropicMessage: ConnectForDocuments = (url, maxRetries = 0) => ({
  name: 'anthropic, messages.create()',
  wire: 'messages',
  async ask(question) {
    const client = new Anthropic({ baseURL: url.replace(/\/v1$/, ''), apiKey: API_KEY, maxRetries });
    return comparable(await client.messages.create(messageRequestOf(question)));
  },
});

export const aiSdkChat: ConnectForDocuments = (baseURL, maxRetries = 0) => ({
  name: 'ai with @ai-sdk/openai, chat',
  wire: 'chat_completions',
  ask: (question) =>
    generate(createOpenAI({ baseURL, apiKey: API_KEY }).chat(question.model), question, maxRetries),
});

export const aiSdkCompatibleChat: ConnectForDocuments = (baseURL, maxRetries = 0) => ({
  name: 'ai with @ai-sdk/openai-compatible',
  wire: 'chat_completions',
  ask(question) {
    const provider = createOpenAICompatible({ name: 'holdfast', baseURL, apiKey: API_KEY });
    return generate(provider.chatModel(question.model), question, maxRetries);
  },
});

export const aiSdkResponse: ConnectForDocuments = (baseURL, maxRetries = 0) => ({
  name: 'ai with @ai-sdk/openai, responses',
  wire: 'responses',
  ask: (question) =>
    generate(createOpenAI({ baseURL, apiKey: API_KEY })(question.model), question, maxRetries),
});

export const langchainInvoke: ConnectForDocuments = (baseURL, maxRetries = 0) => ({
  name: '@langchain/openai, invoke()',
  wire: 'chat_completions',
  async ask({ model, content, tools }) {
    const chat = new ChatOpenAI({ model, apiKey: API_KEY, maxRetries, configuration: { baseURL } });
    const runnable = tools.length > 0 ? chat.bindTools(functionTools(tools)) : chat;
    const message = await runnable.invoke(content);
    const { text, tool_calls, invalid_tool_calls, usage_metadata, additional_kwargs, response_metadata } =
      message;
    return comparable({
      text,
      tool_calls,
      invalid_tool_calls,
      usage_metadata,
      additional_kwargs,
      response_metadata,
    });
  },
});

export const pythonDocuments = (interpreter: string): readonly ConnectForDocuments[] =>
  (
    [
      ['openai for Python, chat.completions.create()', 'chat', 'chat_completions'],
      ['openai for Python, responses.create()', 'response', 'responses'],
      ['anthropic for Python, messages.create()', 'message', 'messages'],
    ] as const
  ).map(([name, manner, wire]) => (url, retries = 0) => {
    const process = new PythonProcess(interpreter, 'ask_documents.py', url, API_KEY, String(retries));
    return {
      name,
      wire,
      async ask(question) {
        const { model, content, tools } = question;
        if (wire === 'messages') return comparable(await process.ask(manner, messageRequestOf(question)));
        const asked =
          wire === 'responses'
            ? { model, input: content, ...(tools.length > 0 && { tools: responsesTools(tools) }) }
            : chatRequest(question);
        return comparable(await process.ask(manner, asked));
      },
      close: () => process.close(),
    };
  });

async function generate(
  model: LanguageModel,
  { content, tools }: Question,
  maxRetries: number,
): Promise<unknown> {
  const { text, reasoningText, toolCalls, finishReason, usage } = await generateText({
    model,
    prompt: content,
    tools: toolSet(tools),
    maxRetries,
  });
  return comparable({ text, reasoningText, toolCalls, finishReason, usage });
}

/**
 * Removes what differs between answers of the test provider: serial numbers, times, and model names, which select its
 * behaviour.
 */
function comparable(answer: unknown): unknown {
  const text = JSON.stringify(answer, (key, value: unknown) =>
    /^(model|model_name|created|created_at|_request_id|completed_at)$/.test(key)
      ? undefined
      : // The end of a thought that was cut is lost.
        key === 'encrypted_content'
        ? '(encrypted)'
        : value,
  );
  return JSON.parse(text.replaceAll(/chatcmpl-\d+/g, 'chatcmpl-n'));
}
