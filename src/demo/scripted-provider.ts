import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';

/** About the pace at which models answer. */
const WORD_MS = 25;

export interface ScriptedProvider {
  /** Base URL of its API. */
  readonly url: string;
  close(): void;
}

/** Starts a local provider whose model always answers with `answer` and continues it exactly from any prefix. */
export async function startScriptedProvider(answer: string): Promise<ScriptedProvider> {
  const server = createServer((request, response) => {
    stream(answer, request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function stream(answer: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { messages } = JSON.parse(await text(request)) as {
    readonly messages: readonly { readonly role: string; readonly content: string }[];
  };
  const last = messages.at(-1);
  const said = last?.role === 'assistant' ? last.content.length : 0;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const word of answer.slice(said).match(/\s*\S+/g) ?? []) {
    if (response.destroyed) return;
    response.write(event({ content: word }));
    await delay(WORD_MS);
  }
  response.end(`${event({}, 'stop')}data: [DONE]\n\n`);
}

const event = (delta: object, finish_reason: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'demo', object: 'chat.completion.chunk', created: 0, model: 'demo', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
