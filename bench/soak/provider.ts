// The soak test's provider: streams the requested answer, continues any prefix of it and cuts some streams.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { randomNumbers } from './random.ts';
import { answerTokens } from './text.ts';

const events_per_s = Number(process.argv[2]);
const cut_share = Number(process.argv[3]);
const random = randomNumbers(Number(process.argv[4]));

const created = Math.floor(Date.now() / 1000);

interface Message {
  readonly role: string;
  readonly content: string;
}

const cuts: readonly ((response: ServerResponse) => void)[] = [
  (response) => response.socket?.resetAndDestroy(),
  // Complete HTTP, but without a finish reason or [DONE].
  (response) => response.end(),
  (response) => {
    const error = { message: 'The engine is overloaded', type: 'server_error', code: 503 };
    response.end(`data: ${JSON.stringify({ error })}\n\n`);
  },
];

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { messages } = JSON.parse(await text(request)) as { messages: Message[] };
  const identity = Number(messages.find(({ role }) => role === 'user')?.content);
  const prefix = messages.findLast(({ role }) => role === 'assistant')?.content ?? '';
  const tokens = tokensAfter(prefix, identity);
  if (tokens === undefined) {
    response.writeHead(400, { 'content-type': 'application/json' });
    const message = `not a prefix of answer ${identity}: ${JSON.stringify(prefix.slice(-40))}`;
    response.end(JSON.stringify({ error: { message, type: 'invalid_request_error' } }));
    return;
  }
  stream(response, tokens);
}

/**
 * Undefined if the answer doesn't start with the prefix. The first token may be the remainder of a partly delivered
 * one.
 */
function tokensAfter(prefix: string, identity: number): string[] | undefined {
  const tokens = answerTokens(identity);
  if (!tokens.join('').startsWith(prefix)) return undefined;
  let skipped = 0;
  while (tokens[0] !== undefined && skipped + tokens[0].length <= prefix.length) {
    skipped += tokens.shift()?.length ?? 0;
  }
  if (tokens[0] !== undefined) tokens[0] = tokens[0].slice(prefix.length - skipped);
  return tokens;
}

function stream(response: ServerResponse, tokens: readonly string[]): void {
  const id = `chatcmpl-${Math.floor(random() * 2 ** 48).toString(36)}`;
  const cut = random() < cut_share ? cuts[Math.floor(random() * cuts.length)] : undefined;
  const cutAt = cut && 1 + Math.floor(random() * tokens.length);
  const write = (delta: object, finish_reason: string | null = null) => {
    const choices = [{ index: 0, delta, finish_reason }];
    const chunk = { id, object: 'chat.completion.chunk', created, model: 'soak', choices };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  write({ role: 'assistant', content: '' });
  let sent = 0;
  const timer = setInterval(() => {
    if (sent === cutAt) {
      clearInterval(timer);
      cut?.(response);
    } else if (sent < tokens.length) {
      write({ content: tokens[sent] });
      sent += 1;
    } else {
      clearInterval(timer);
      write({}, 'stop');
      response.end('data: [DONE]\n\n');
    }
  }, 1000 / events_per_s);
  response.on('close', () => clearInterval(timer));
}

const server = createServer((request, response) => {
  answer(request, response).catch((error: unknown) => response.destroy(error as Error));
});
server.listen(0, '127.0.0.1', 1024, () => {
  const address = server.address();
  if (address !== null && typeof address === 'object') process.send?.({ port: address.port });
});
