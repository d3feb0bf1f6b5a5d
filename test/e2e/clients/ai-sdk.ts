import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { jsonSchema, type LanguageModel, streamText, type ToolSet, tool } from 'ai';
import { type Answer, API_KEY, type ChatClient, type Question } from './chat-client.ts';

type ProviderOptions = NonNullable<Parameters<typeof streamText>[0]['providerOptions']>;

export function aiSdkOpenai(baseURL: string, fetch?: typeof globalThis.fetch): ChatClient {
  const provider = createOpenAI({ baseURL, apiKey: API_KEY, ...(fetch && { fetch }) });
  return {
    name: 'ai with @ai-sdk/openai',
    ask: (question) => askModel(provider.chat(question.model), question),
  };
}

export function aiSdkCompatible(baseURL: string, fetch?: typeof globalThis.fetch): ChatClient {
  const provider = createOpenAICompatible({
    name: 'holdfast',
    baseURL,
    apiKey: API_KEY,
    includeUsage: true,
    ...(fetch && { fetch }),
  });
  return {
    name: 'ai with @ai-sdk/openai-compatible',
    ask: (question) =>
      askModel(provider.chatModel(question.model), question, {
        providerOptions: { holdfast: question.parameters },
      }),
  };
}

interface AskOptions {
  /** Options for the provider with this name. */
  readonly providerOptions?: Readonly<Record<string, Question['parameters']>>;
  /** For providers that require a limit. */
  readonly maxOutputTokens?: number;
}

export async function askModel(
  model: LanguageModel,
  { content, tools }: Question,
  { providerOptions = {}, ...limits }: AskOptions = {},
): Promise<Answer> {
  const { stream } = streamText({
    model,
    prompt: content,
    tools: toolSet(tools),
    providerOptions: providerOptions as ProviderOptions,
    ...limits,
    maxRetries: 0,
    // The stream reports errors as well; by default, the SDK prints them.
    onError: () => {},
  });
  return answerIn(stream);
}

/** The stream parts that all versions share. */
type StreamPart =
  | { readonly type: 'text-delta' | 'reasoning-delta'; readonly text: string }
  | {
      readonly type: 'tool-call';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly input: unknown;
    }
  | { readonly type: 'error'; readonly error: unknown }
  | { readonly type: 'finish'; readonly finishReason: string; readonly totalUsage: unknown };

/** Collects the answer from a stream's parts; rejects with the error in the stream, if any. */
export async function answerIn(
  stream: AsyncIterable<StreamPart | { readonly type: string }>,
): Promise<Answer> {
  const said = { text: '', reasoning: '' };
  const toolCalls: { id: string; name: string; arguments: unknown }[] = [];
  let end: { finish: string; usage: unknown } | undefined;
  for await (const each of stream) {
    const part = each as StreamPart;
    switch (part.type) {
      case 'text-delta':
        said.text += part.text;
        break;
      case 'reasoning-delta':
        said.reasoning += part.text;
        break;
      case 'tool-call':
        toolCalls.push({ id: part.toolCallId, name: part.toolName, arguments: part.input });
        break;
      case 'error':
        // AI SDK 5 passes on the error event itself.
        throw part.error instanceof Error ? part.error : new Error(JSON.stringify(part.error));
      case 'finish':
        end = { finish: part.finishReason, usage: part.totalUsage };
    }
  }
  if (!end) throw new Error('the stream ended without a finish part');
  return { ...said, toolCalls, ...end };
}

export const toolSet = (tools: Question['tools']): ToolSet =>
  Object.fromEntries(
    tools.map(({ name, parameters }) => [name, tool({ inputSchema: jsonSchema({ ...parameters }) })]),
  );
