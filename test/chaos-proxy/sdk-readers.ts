import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { PROMPT_END } from '../provider/request.ts';
import type { Read } from './paced-provider.ts';

/** Retries are off because the tests look at the first failure. */
const openai = (baseURL: string, defaultHeaders: Headers = {}) =>
  new OpenAI({ baseURL, apiKey: 'sk-test', maxRetries: 0, defaultHeaders });
const anthropic = (url: string, defaultHeaders: Headers = {}) =>
  new Anthropic({ baseURL: url.replace(/\/v1$/, ''), apiKey: 'sk-test', maxRetries: 0, defaultHeaders });

type Headers = Readonly<Record<string, string>>;

const messages = [{ role: 'user' as const, content: 'When is the tide?' }];
const message = { model: 'm', max_tokens: 100, messages };

/** Reads an answer as an application does, and rejects with the SDK's error. */
export type Reader = (url: string, read: Read, headers?: Headers) => Promise<void>;

export const STREAM_READERS = {
  'openai, chat completions': async (url, read, headers) => {
    const stream = await openai(url, headers).chat.completions.create({ model: 'm', messages, stream: true });
    for await (const { choices } of stream) {
      read.add(choices[0]?.delta.content);
      read.add(choices[0]?.delta.tool_calls?.[0]?.function?.arguments);
    }
  },
  'openai, responses': async (url, read, headers) => {
    const stream = await openai(url, headers).responses.create({ model: 'm', input: 'When?', stream: true });
    for await (const event of stream)
      if (
        event.type === 'response.output_text.delta' ||
        event.type === 'response.function_call_arguments.delta'
      )
        read.add(event.delta);
  },
  'openai, completions': async (url, read, headers) => {
    const stream = await openai(url, headers).completions.create({
      model: 'm',
      prompt: `When?${PROMPT_END}`,
      stream: true,
    });
    for await (const { choices } of stream) read.add(choices[0]?.text);
  },
  'anthropic, messages': async (url, read, headers) => {
    for await (const event of await anthropic(url, headers).messages.create({ ...message, stream: true })) {
      if (event.type !== 'content_block_delta') continue;
      if (event.delta.type === 'text_delta') read.add(event.delta.text);
      else if (event.delta.type === 'input_json_delta') read.add(event.delta.partial_json);
    }
  },
} satisfies Record<string, Reader>;

export const DOCUMENT_READERS = {
  'openai, chat completions': async (url, read, headers) => {
    const { choices } = await openai(url, headers).chat.completions.create({ model: 'm', messages });
    read.add(choices[0]?.message.content);
  },
  'openai, responses': async (url, read, headers) => {
    read.add((await openai(url, headers).responses.create({ model: 'm', input: 'When?' })).output_text);
  },
  'openai, completions': async (url, read, headers) => {
    const { choices } = await openai(url, headers).completions.create({
      model: 'm',
      prompt: `When?${PROMPT_END}`,
    });
    read.add(choices[0]?.text);
  },
  'anthropic, messages': async (url, read, headers) => {
    const { content } = await anthropic(url, headers).messages.create(message);
    for (const block of content) if (block.type === 'text') read.add(block.text);
  },
} satisfies Record<keyof typeof STREAM_READERS, Reader>;
