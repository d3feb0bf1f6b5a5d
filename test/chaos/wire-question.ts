import { messagesTools } from '../e2e/clients/anthropic.ts';
import { responsesTools } from '../e2e/clients/openai-responses.ts';
import { modelOf } from '../e2e/deployment.ts';
import { streamRequest } from '../e2e/raw-client.ts';
import { TIDES } from '../e2e/situations.ts';
import { readMessages } from '../simulation/messages-reading.ts';
import { readResponses } from '../simulation/responses-reading.ts';
import { readStream, type StreamReading } from '../simulation/stream-reading.ts';

/** How to ask on one wire, and how to read its answers as strictly as the strictest SDK does. */
export interface WireQuestion {
  readonly path: string;
  request(question: string): object;
  read(body: string): StreamReading;
}

/** More than any answer needs. */
const MAX_TOKENS = 100_000;

export const CHAT: WireQuestion = {
  path: '/chat/completions',
  request: (question) =>
    streamRequest(modelOf('vllm'), question, { tools: [{ type: 'function', function: TIDES }] }),
  read: readStream,
};

export const MESSAGES: WireQuestion = {
  path: '/messages',
  request: (question) => ({
    model: modelOf('h1'),
    max_tokens: MAX_TOKENS,
    stream: true,
    messages: [{ role: 'user', content: question }],
    tools: messagesTools([TIDES]),
  }),
  // A replica may die after a block has begun and before it has any content.
  read: (body) => readMessages(body, { parted: true }),
};

export const RESPONSES: WireQuestion = {
  path: '/responses',
  request: (question) => ({
    model: modelOf('h1'),
    stream: true,
    input: question,
    tools: responsesTools([TIDES]),
  }),
  read: readResponses,
};
