import type { ServerResponse } from 'node:http';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import {
  consumeStream,
  convertToModelMessages,
  pipeUIMessageStreamToResponse,
  streamText,
  toUIMessageStream,
} from 'ai';
import { signedRun } from 'holdfast-client';
import { type Chat, loadChat, saveChat } from './chats.ts';

const {
  HOLDFAST_URL = 'http://127.0.0.1:8080',
  HOLDFAST_PUBLIC_URL = HOLDFAST_URL,
  API_KEY = 'demo',
  MODEL = 'gpt-4.1-mini',
} = process.env;

type Pending = NonNullable<Chat['pending']>;

/**
 * Answers the chat's last message, whether this begins the answer or comes back to it: the key, and then the run, lead to what
 * Holdfast has of the answer. Nothing aborts the request for it: pages come and go, and only the stop URL ends the run.
 */
export async function answer(chat: Chat, pending: Pending, response: ServerResponse): Promise<void> {
  const run = signedRun({ publicUrl: HOLDFAST_PUBLIC_URL });
  const holdfast = createOpenAICompatible({
    name: 'holdfast',
    baseURL: `${HOLDFAST_URL}/v1`,
    apiKey: API_KEY,
    headers: { 'idempotency-key': pending.id, ...(pending.run && { 'holdfast-run-id': pending.run }) },
    fetch: run.fetch,
  });
  const messages = await convertToModelMessages([...chat.messages]);
  const { stream } = streamText({
    model: holdfast(MODEL),
    messages,
    // Holdfast makes the attempts.
    maxRetries: 0,
    onError: ({ error }) => {
      const { code } = error as { code?: unknown };
      if (code !== 'run_cancelled') console.error(error);
    },
  });

  const { id, headers } = await run.opened;
  if (id !== undefined && id !== pending.run) saveChat({ ...chat, pending: { ...pending, run: id } });
  await pipeUIMessageStreamToResponse({
    response,
    headers,
    stream: toUIMessageStream({
      stream,
      originalMessages: [...chat.messages],
      generateMessageId: () => pending.id,
      onEnd: ({ responseMessage }) => {
        // Two requests may have read the same answer: the second one finds it saved.
        if (loadChat(chat.id).pending?.id !== pending.id) return;
        const isEmpty = responseMessage.parts.length === 0;
        saveChat({ id: chat.id, messages: isEmpty ? chat.messages : [...chat.messages, responseMessage] });
      },
    }),
    // Read to its end whether or not the page is still there, so that the answer is saved.
    consumeSseStream: consumeStream,
  });
}
