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
 * Streams the answer to the chat's last message. It doesn't matter whether the request starts the answer or returns to
 * it: the idempotency key and, later, the run id lead Holdfast to what it already has. Nothing here aborts the request:
 * pages come and go, and only the stop URL ends the run.
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
    // Holdfast makes the retries.
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
        // Two requests may read the same answer; the first one to finish has already saved it.
        if (loadChat(chat.id).pending?.id !== pending.id) return;
        const isEmpty = responseMessage.parts.length === 0;
        saveChat({ id: chat.id, messages: isEmpty ? chat.messages : [...chat.messages, responseMessage] });
      },
    }),
    // Read the stream to its end even if the page has gone, so that the answer is saved.
    consumeSseStream: consumeStream,
  });
}
