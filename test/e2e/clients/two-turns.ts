import { createOpenAI } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import { generateText, type ModelMessage, streamText } from 'ai';
import OpenAI from 'openai';
import type { ResponseInputItem } from 'openai/resources/responses/responses';
import type { WireName } from '../../../src/checkpoint/journal.ts';
import { modelOf } from '../deployment.ts';
import { TIDES } from '../situations.ts';
import { toolSet } from './ai-sdk.ts';
import { messagesTools } from './anthropic.ts';
import { API_KEY } from './chat-client.ts';
import { responsesTools } from './openai-responses.ts';

export const BE_BRIEF = 'Be brief.';
const RESULT = 'High water at noon.';
const model = modelOf('h1');

/** A conversation through one SDK, with the credential in the `Authorization` header, where OpenAI's SDKs put it. */
export interface TwoTurns {
  readonly name: string;
  readonly wire: WireName;
  /** Uses the tools: asks `first`, and sends the results of the calls to each of `then`. */
  useTools(question: string, first: string, then: readonly string[]): Promise<void>;
  /** Asks one question within a thread. Calls `onText` with each piece of the answer if the SDK streams. */
  say(question: string, url: string, thread: string, onText?: () => void): Promise<void>;
}

/** `streams`: whether the second turns stream. The instructions are marked for the prompt cache, as agents do. */
export function anthropicTurns(streams: boolean): TwoTurns {
  const connect = (url: string, thread = '') =>
    new Anthropic({
      baseURL: url.replace(/\/v1$/, ''),
      apiKey: null,
      authToken: API_KEY,
      maxRetries: 0,
      defaultHeaders: { 'holdfast-thread': thread },
    });
  const requestOf = (messages: Anthropic.MessageParam[]) => ({
    model,
    max_tokens: 4096,
    system: [{ type: 'text' as const, text: BE_BRIEF, cache_control: { type: 'ephemeral' as const } }],
    tools: messagesTools([TIDES]),
    messages,
  });
  const ask = (client: Anthropic, messages: Anthropic.MessageParam[]) =>
    streams
      ? client.messages.stream(requestOf(messages)).finalMessage()
      : client.messages.create(requestOf(messages));
  return {
    name: `@anthropic-ai/sdk, second turns ${streams ? 'as streams' : 'without streams'}`,
    wire: 'messages',
    async useTools(question, first, then) {
      const messages: Anthropic.MessageParam[] = [{ role: 'user', content: question }];
      const { content } = await connect(first).messages.stream(requestOf(messages)).finalMessage();
      const results = content
        .filter((block) => block.type === 'tool_use')
        .map(({ id }) => ({ type: 'tool_result' as const, tool_use_id: id, content: RESULT }));
      messages.push({ role: 'assistant', content }, { role: 'user', content: results });
      for (const url of then) await ask(connect(url), messages);
    },
    async say(question, url, thread, onText) {
      const client = connect(url, thread);
      const messages: Anthropic.MessageParam[] = [{ role: 'user', content: question }];
      if (onText) await client.messages.stream(requestOf(messages)).on('text', onText).finalMessage();
      else await ask(client, messages);
    },
  };
}

export function openaiTurns(streams: boolean): TwoTurns {
  const connect = (url: string, thread = '') =>
    new OpenAI({
      baseURL: url,
      apiKey: API_KEY,
      maxRetries: 0,
      defaultHeaders: { 'holdfast-thread': thread },
    });
  const requestOf = (input: string | ResponseInputItem[]) => ({
    model,
    instructions: BE_BRIEF,
    tools: responsesTools([TIDES]),
    input,
  });
  const ask = (client: OpenAI, input: string | ResponseInputItem[]) =>
    streams
      ? client.responses.stream(requestOf(input)).finalResponse()
      : client.responses.create(requestOf(input));
  return {
    name: `openai, second turns ${streams ? 'as streams' : 'without streams'}`,
    wire: 'responses',
    async useTools(question, first, then) {
      const input: ResponseInputItem[] = [{ role: 'user', content: question }];
      const { output } = await connect(first).responses.stream(requestOf(input)).finalResponse();
      const calls = output.filter((item) => item.type === 'function_call');
      input.push(...(output as ResponseInputItem[]));
      for (const { call_id } of calls) input.push({ type: 'function_call_output', call_id, output: RESULT });
      for (const url of then) await ask(connect(url), input);
    },
    async say(question, url, thread, onText) {
      const client = connect(url, thread);
      if (!onText) return void (await ask(client, question));
      const stream = client.responses.stream(requestOf(question));
      await stream.on('response.output_text.delta', onText).finalResponse();
    },
  };
}

export function aiTurns(streams: boolean): TwoTurns {
  const connect = (url: string, thread = '') =>
    createOpenAI({ baseURL: url, apiKey: API_KEY, headers: { 'holdfast-thread': thread } })(model);
  const requestOf = (messages: ModelMessage[]) => ({
    instructions: BE_BRIEF,
    messages,
    tools: toolSet([TIDES]),
    maxRetries: 0,
  });
  const ask = async (url: string, messages: ModelMessage[], thread?: string) => {
    const request = { ...requestOf(messages), model: connect(url, thread) };
    await (streams ? streamText({ ...request, onError: () => {} }).finishReason : generateText(request));
  };
  return {
    name: `ai, second turns ${streams ? 'as streams' : 'without streams'}`,
    wire: 'responses',
    async useTools(question, first, then) {
      const messages: ModelMessage[] = [{ role: 'user', content: question }];
      const answer = streamText({ ...requestOf(messages), model: connect(first) });
      const calls = await answer.toolCalls;
      messages.push(...(await answer.responseMessages), {
        role: 'tool',
        content: calls.map(({ toolCallId, toolName }) => ({
          type: 'tool-result',
          toolCallId,
          toolName,
          output: { type: 'text', value: RESULT },
        })),
      });
      for (const url of then) await ask(url, messages);
    },
    async say(question, url, thread, onText) {
      const messages: ModelMessage[] = [{ role: 'user', content: question }];
      if (!onText) return ask(url, messages, thread);
      let failure: unknown;
      const { stream } = streamText({
        ...requestOf(messages),
        model: connect(url, thread),
        onError: ({ error }) => {
          failure = error;
        },
      });
      for await (const { type } of stream) if (type === 'text-delta') onText();
      if (failure) throw failure;
    },
  };
}
