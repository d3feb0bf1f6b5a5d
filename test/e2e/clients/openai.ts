import OpenAI from 'openai';
import { PROMPT_END } from '../../provider/request.ts';
import { type Answer, API_KEY, type ChatClient, functionTools, type Question } from './chat-client.ts';

/** Retries are off, because recovery is Holdfast's job. */
const connect = (baseURL: string, fetch?: typeof globalThis.fetch) =>
  new OpenAI({ baseURL, apiKey: API_KEY, maxRetries: 0, fetch });

const requestOf = ({ model, content, tools, parameters }: Question) => ({
  model,
  messages: [{ role: 'user' as const, content }],
  stream: true as const,
  stream_options: { include_usage: true },
  ...(tools.length > 0 && { tools: functionTools(tools) }),
  ...parameters,
});

/** The raw chunks, assembled by the application. */
export function openaiChunks(baseURL: string, fetch?: typeof globalThis.fetch): ChatClient {
  const client = connect(baseURL, fetch);
  return {
    name: 'openai, chunk by chunk',
    async ask(question) {
      const said = { text: '', reasoning: '' };
      const calls: { id: string; name: string; arguments: string }[] = [];
      let finish: string | undefined;
      let usage: unknown;
      for await (const chunk of await client.chat.completions.create(requestOf(question))) {
        usage = chunk.usage ?? usage;
        const [choice] = chunk.choices;
        if (!choice) continue;
        const thought = choice.delta as { reasoning_content?: string; reasoning?: string };
        said.text += choice.delta.content ?? '';
        said.reasoning += thought.reasoning_content ?? thought.reasoning ?? '';
        finish = choice.finish_reason ?? finish;
        for (const { index, id, function: call } of choice.delta.tool_calls ?? []) {
          const known = calls[index] ?? { id: '', name: '', arguments: '' };
          calls[index] = known;
          known.id += id ?? '';
          known.name += call?.name ?? '';
          known.arguments += call?.arguments ?? '';
        }
      }
      const toolCalls = calls.map((call) => ({ ...call, arguments: JSON.parse(call.arguments) as unknown }));
      return { ...said, toolCalls, finish, usage };
    },
  };
}

/** The helper that assembles the message itself. */
export function openaiHelper(baseURL: string, fetch?: typeof globalThis.fetch): ChatClient {
  const client = connect(baseURL, fetch);
  return {
    name: 'openai, .stream()',
    async ask(question): Promise<Answer> {
      const { choices, usage } = await client.chat.completions
        .stream(requestOf(question))
        .finalChatCompletion();
      const choice = choices[0];
      const toolCalls = choice?.message.tool_calls ?? [];
      return {
        text: choice?.message.content ?? '',
        toolCalls: toolCalls.map((call) => {
          if (call.type !== 'function') throw new Error(`a tool call of type ${call.type}`);
          const { name, arguments: text } = call.function;
          return { id: call.id, name, arguments: JSON.parse(text) as unknown };
        }),
        finish: choice?.finish_reason,
        usage,
      };
    },
  };
}

/** `/v1/completions` */
export function openaiCompletions(baseURL: string, fetch?: typeof globalThis.fetch): ChatClient {
  const client = connect(baseURL, fetch);
  return {
    name: 'openai, completions',
    async ask({ model, content, parameters }) {
      let text = '';
      let finish: string | undefined;
      let usage: unknown;
      const request = {
        model,
        prompt: content + PROMPT_END,
        stream: true as const,
        stream_options: { include_usage: true },
        ...parameters,
      };
      for await (const chunk of await client.completions.create(request)) {
        usage = chunk.usage ?? usage;
        const [choice] = chunk.choices;
        text += choice?.text ?? '';
        finish = choice?.finish_reason ?? finish;
      }
      return { text, toolCalls: [], finish, usage };
    },
  };
}
