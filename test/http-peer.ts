import { once } from 'node:events';
import http, { type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** Starts a plain HTTP/1.1 server on a free port, and closes it when the test ends. Returns its root URL. */
export async function startProvider(listener: RequestListener): Promise<string> {
  const server = http.createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A listener for a provider, and `next` for the next request that it receives. */
export function providerRequests() {
  const waiting: ((exchange: Exchange) => void)[] = [];
  const arrived: Exchange[] = [];
  return {
    listener: (request: IncomingMessage, response: ServerResponse) => {
      const taker = waiting.shift();
      if (taker) taker({ request, response });
      else arrived.push({ request, response });
    },
    next(): Promise<Exchange> {
      const exchange = arrived.shift();
      return exchange ? Promise.resolve(exchange) : new Promise((resolve) => waiting.push(resolve));
    },
  };
}

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Opens a TCP connection to `url` that sends exactly what the test writes. Destroyed when the test ends. */
export async function connect(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = net.connect(Number(port), hostname);
  socket.on('error', () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}

/** Everything that the peer sends until it closes. */
export async function received(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (bytes: Buffer) => {
    text += bytes.toString('latin1');
  });
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
  return text;
}

/** Reads until `marker` arrives; includes the rest of the same piece. */
export function receivedUntil(socket: Socket, marker: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const pieces: string[] = [];
    let end = '';
    const onData = (bytes: Buffer) => {
      const piece = bytes.toString('latin1');
      pieces.push(piece);
      // Searching the whole text for each piece would take seconds for a long answer.
      end = end.slice(-marker.length) + piece;
      if (!end.includes(marker)) return;
      socket.off('data', onData).off('close', onClose);
      resolve(pieces.join(''));
    };
    const onClose = () =>
      reject(new Error(`closed before ${JSON.stringify(marker)}: ${JSON.stringify(pieces.join(''))}`));
    socket.on('data', onData).on('close', onClose);
  });
}

/** One framed chunk of a provider's answer. */
export const chunkEvent = (delta: object, finish_reason: string | null = null): string =>
  `data: ${JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason }],
  })}\n\n`;

/** Sends a complete answer of one word to a prompt of 12 tokens. */
export function streamOneWord(response: ServerResponse, word: string): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const [text, finish] = [chunkEvent({ role: 'assistant', content: word }), chunkEvent({}, 'stop')];
  const usage = { prompt_tokens: 12, completion_tokens: 1, total_tokens: 13 };
  response.end(`${text}${finish}data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`);
}
