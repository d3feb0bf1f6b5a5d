import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { type UIMessage, validateUIMessages } from 'ai';
import { answer } from './answer.ts';
import { type Chat, loadChat, saveChat } from './chats.ts';

const { PORT = '3000' } = process.env;
const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');
const PAGE = read('page.html');
const SCRIPT = read('dist/page.js');

async function handle(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
  const { pathname } = new URL(request.url ?? '/', 'http://localhost');
  const [, chat, resumed] = /^\/chats\/([^/]+)$|^\/api\/chat\/([^/]+)\/stream$/.exec(pathname) ?? [];

  if (request.method === 'POST' && pathname === '/api/chat') {
    const { id, messages } = (await json(request)) as { id: string; messages: UIMessage[] };
    const begun = { id, messages: await validateUIMessages({ messages }), pending: { id: randomUUID() } };
    saveChat(begun);
    return answer(begun, begun.pending, response);
  }
  if (request.method !== 'GET') return response.writeHead(405).end();
  if (resumed) {
    const known = loadChat(resumed);
    return known.pending ? answer(known, known.pending, response) : response.writeHead(204).end();
  }
  if (chat) return response.writeHead(200, { 'content-type': 'text/html' }).end(pageOf(loadChat(chat)));
  if (pathname === '/page.js')
    return response.writeHead(200, { 'content-type': 'text/javascript' }).end(SCRIPT);
  if (pathname === '/') return response.writeHead(303, { location: `/chats/${randomUUID()}` }).end();
  return response.writeHead(404).end();
}

/** The page with the messages so far, which it needs to start. */
function pageOf({ id, messages }: Chat): string {
  const begin = JSON.stringify({ id, messages }).replaceAll('<', '\\u003c');
  return PAGE.replace('{}', () => begin);
}

const server = createServer((request, response) => {
  handle(request, response).catch((error: unknown) => {
    console.error(error);
    if (response.headersSent) response.destroy();
    else response.writeHead(500).end();
  });
}).listen(Number(PORT), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
