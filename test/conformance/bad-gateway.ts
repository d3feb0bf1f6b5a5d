import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** An answer that the provider has broken off, for the gateway to handle. */
export interface Broken {
  /** The response to the client. */
  readonly response: ServerResponse;
  /** The text that the client has received. */
  readonly said: string;
  /** Requests the rest by prefill, or the whole answer again, and passes on the events that `keeps` accepts. */
  again(from: 'start' | 'rest', keeps?: (event: string, nth: number) => boolean): Promise<void>;
}

export type OnBreak = (broken: Broken) => unknown;

export interface BadGateway {
  readonly root: string;
  close(): Promise<void>;
}

/** Starts a gateway for chat completions that passes everything on until the answer breaks. */
export async function startBadGateway(provider_port: number, onBreak: OnBreak): Promise<BadGateway> {
  const server = createServer((asked, response) => {
    void serve(asked, response, provider_port, onBreak).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    root: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

async function serve(
  asked: IncomingMessage,
  response: ServerResponse,
  port: number,
  onBreak: OnBreak,
): Promise<void> {
  if (asked.url !== '/v1/chat/completions') return void response.writeHead(404).end();
  const body = JSON.parse(await text(asked)) as { readonly messages: readonly object[] };
  let said = '';
  const pass = (event: string) => {
    said += textOf(event);
    response.write(event);
  };
  const first = await ask(port, body);
  response.writeHead(first.statusCode ?? 502, { 'content-type': first.headers['content-type'] });
  const isWhole = await passedOn(first, pass);
  if (isWhole) return void response.end();
  await onBreak({
    response,
    said,
    async again(from, keeps = () => true) {
      const messages = [...body.messages, { role: 'assistant', content: said }];
      const answer = await ask(port, from === 'rest' ? { ...body, messages } : body);
      let nth = 0;
      await passedOn(answer, (event) => {
        if (keeps(event, nth++)) pass(event);
      });
      response.end();
    },
  });
}

async function ask(port: number, body: object): Promise<IncomingMessage> {
  const headers = { 'content-type': 'application/json' };
  const asked = request({ host: '127.0.0.1', port, path: '/v1/chat/completions', method: 'POST', headers });
  // After the response has begun, the request also emits an error for a reset.
  asked.on('error', () => {});
  asked.end(JSON.stringify(body));
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  return answer;
}

/** Returns whether the answer arrived completely. */
async function passedOn(answer: IncomingMessage, pass: (event: string) => void): Promise<boolean> {
  let rest = '';
  let isWhole = !answer.headers['content-type']?.startsWith('text/event-stream');
  try {
    for await (const bytes of answer.setEncoding('utf8')) {
      const events = `${rest}${bytes}`.split(/(?<=\n\n)/);
      rest = events.at(-1)?.endsWith('\n\n') ? '' : (events.pop() ?? '');
      isWhole ||= events.includes('data: [DONE]\n\n');
      for (const event of events) pass(event);
    }
  } catch {
    // The answer was cut.
  }
  if (isWhole) pass(rest);
  return isWhole;
}

function textOf(event: string): string {
  if (!event.startsWith('data: {')) return '';
  return JSON.parse(event.slice('data: '.length)).choices?.[0]?.delta?.content ?? '';
}

/** An event of a chat completion. */
export const chunk = (delta: object, finish_reason: string | null = null): string => {
  const choices = [{ index: 0, delta, finish_reason }];
  const event = {
    id: 'chatcmpl-double',
    object: 'chat.completion.chunk',
    created: 0,
    model: 'double',
    choices,
  };
  return `data: ${JSON.stringify(event)}\n\n`;
};
