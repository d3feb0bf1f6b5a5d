import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import type { Read } from './paced-provider.ts';

/** Retries are off: what is looked at is the first failure. */
const openai = (baseURL: string) => new OpenAI({ baseURL, apiKey: 'sk-test', maxRetries: 0 });
const anthropic = (url: string) =>
  new Anthropic({ baseURL: url.replace(/\/v1$/, ''), apiKey: 'sk-test', maxRetries: 0 });

const messages = [{ role: 'user' as const, content: 'When is the tide?' }];
const message = { model: 'm', max_tokens: 100, messages };

/** Reads an answer as an application does, and rejects as the SDK does. */
export type Reader = (url: string, read: Read) => Promise<void>;

export const STREAM_READERS = {
  'openai, chat completions': async (url, read) => {
    const stream = await openai(url).chat.completions.create({ model: 'm', messages, stream: true });
    for await (const { choices } of stream) {
      read.add(choices[0]?.delta.content);
      read.add(choices[0]?.delta.tool_calls?.[0]?.function?.arguments);
    }
  },
  'openai, responses': async (url, read) => {
    const stream = await openai(url).responses.create({ model: 'm', input: 'When?', stream: true });
    for await (const event of stream)
      if (
        event.type === 'response.output_text.delta' ||
        event.type === 'response.function_call_arguments.delta'
      )
        read.add(event.delta);
  },
  'openai, completions': async (url, read) => {
    const stream = await openai(url).completions.create({ model: 'm', prompt: 'When?', stream: true });
    for await (const { choices } of stream) read.add(choices[0]?.text);
  },
  'anthropic, messages': async (url, read) => {
    for await (const event of await anthropic(url).messages.create({ ...message, stream: true })) {
      if (event.type !== 'content_block_delta') continue;
      if (event.delta.type === 'text_delta') read.add(event.delta.text);
      else if (event.delta.type === 'input_json_delta') read.add(event.delta.partial_json);
    }
  },
} satisfies Record<string, Reader>;

export const DOCUMENT_READERS = {
  'openai, chat completions': async (url) => {
    await openai(url).chat.completions.create({ model: 'm', messages });
  },
  'openai, responses': async (url) => {
    await openai(url).responses.create({ model: 'm', input: 'When?' });
  },
  'openai, completions': async (url) => {
    await openai(url).completions.create({ model: 'm', prompt: 'When?' });
  },
  'anthropic, messages': async (url) => {
    await anthropic(url).messages.create(message);
  },
} satisfies Record<keyof typeof STREAM_READERS, Reader>;
