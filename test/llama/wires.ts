import type { PassedRequest } from './cutter.ts';
import { chatPrompt, completionPrompt } from './prompts.ts';
import { RECITAL_DISTANCE } from './reciting-model.ts';

/** The wires of llama-server with streamed answers that can be continued. */
export const WIRES = {
  chat: {
    path: '/chat/completions',
    question: (text: string): object => ({ messages: [{ role: 'user', content: chatPrompt(text) }] }),
    /** The answer so far, as contained in a request for the rest. */
    prefixOf: ({ body }: PassedRequest): unknown =>
      (body.messages as { role: string; content: string }[]).find(({ role }) => role === 'assistant')
        ?.content,
  },
  completions: {
    path: '/completions',
    question: (text: string): object => ({ prompt: completionPrompt(text), max_tokens: 2000 }),
    prefixOf: ({ body }: PassedRequest): unknown =>
      Buffer.from(String(body.prompt)).subarray(RECITAL_DISTANCE).toString(),
  },
} as const;

export type WireName = keyof typeof WIRES;
