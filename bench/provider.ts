// The benchmark's provider: one chat-completion chunk per event, paced or as fast as possible.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { micros } from './clock.ts';
import { eventContent, LAST_CONTENT, type Script } from './script.ts';

// The longest sleep while streams are open. It bounds the delay before a new request is noticed.
const NAP_LIMIT_US = 200;

const created = Math.floor(Date.now() / 1000);
const EVENT_HEAD = `data: {"id":"chatcmpl-CQ2k7ZyXh0wFJ4n8","object":"chat.completion.chunk","created":${created},"model":"bench","system_fingerprint":"fp_7c1e0a44bd","choices":[{"index":0,"delta":`;

function event(delta: string, finish_reason = 'null'): string {
  const data = `${EVENT_HEAD}${delta},"finish_reason":${finish_reason}}]}\n\n`;
  return framed(data);
}

// Writing the chunk framing together with the event takes one write; node:http takes three.
const framed = (data: string) => `${data.length.toString(16)}\r\n${data}\r\n`;

interface Stream {
  readonly socket: Socket;
  readonly response: ServerResponse;
  readonly script: Script;
  sequence: number;
  due_us: number;
}

const open = new Set<Stream>();
let ticking = false;

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = JSON.parse(await text(request)) as { messages: { content: string }[] };
  const script = JSON.parse(body.messages.at(-1)?.content ?? '') as Script;
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  response.flushHeaders();
  const socket = response.socket;
  if (socket === null) return;
  socket.write(event('{"role":"assistant","content":""}'), 'latin1');
  const now_us = micros();
  const { interval_us, phase_us } = script;
  const due_us = interval_us === 0 ? 0 : now_us - (now_us % interval_us) + interval_us + phase_us;
  const stream: Stream = { socket, response, script, sequence: 0, due_us };
  emit(stream, now_us);
  open.add(stream);
  response.on('close', () => open.delete(stream));
  if (!ticking) {
    ticking = true;
    setImmediate(tick);
  }
}

function emit(stream: Stream, now_us: number): void {
  stream.socket.write(event(`{"content":"${eventContent(stream.sequence, now_us)}"}`), 'latin1');
  stream.sequence += 1;
}

function finish(stream: Stream): void {
  open.delete(stream);
  const total = event(`{"content":"${LAST_CONTENT}${stream.sequence}"}`);
  stream.socket.write(`${total}${event('{}', '"stop"')}${framed('data: [DONE]\n\n')}`, 'latin1');
  stream.response.end();
}

// A timer's resolution of 1 ms would bundle the events of ten streams, which real streams don't do.
const nap = new Int32Array(new SharedArrayBuffer(4));

function tick(): void {
  ticking = open.size > 0;
  if (!ticking) return;
  let next_us = micros() + NAP_LIMIT_US;
  for (const stream of open) {
    if (stream.script.interval_us === 0) {
      if (!stream.socket.writableNeedDrain) emit(stream, micros());
      next_us = 0;
    } else {
      const now_us = micros();
      if (stream.due_us <= now_us) {
        emit(stream, now_us);
        stream.due_us += stream.script.interval_us;
      }
      next_us = Math.min(next_us, stream.due_us);
    }
    if (stream.sequence >= stream.script.events) finish(stream);
  }
  const nap_us = next_us - micros();
  if (nap_us > 0) Atomics.wait(nap, 0, 0, nap_us / 1000);
  setImmediate(tick);
}

const server = createServer((request, response) => {
  answer(request, response).catch((error: unknown) => response.destroy(error as Error));
});
// Proxies keep connections open between rounds. If the provider closed one, the proxy would seem to fail.
server.keepAliveTimeout = 600_000;
server.listen(0, '127.0.0.1', 1024, () => {
  const address = server.address();
  if (address !== null && typeof address === 'object') process.send?.({ port: address.port });
});
