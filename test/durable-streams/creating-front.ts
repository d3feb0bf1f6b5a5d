import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import type { Lease } from '../../src/checkpoint/store.ts';
import { HEADER, newRunId } from '../checkpoint/fixtures.ts';
import { CREDENTIAL, OWNER } from '../proxy/run-deployment.ts';
import type { Replica } from '../replica.ts';

interface Stream {
  readonly lease: Lease;
  readonly contentType: string;
  seq: number;
  closed: boolean;
}

/**
 * Emulates the parts of the protocol that create and append: it writes runs to a replica's store, and lets the replica
 * answer every read. A body that isn't JSON becomes one message, a string.
 */
export function creatingFront(replica: Replica): RequestListener {
  const streams = new Map<string, Stream>();
  return (request, response) => {
    // The replica never sees a request for a stream that can't be created.
    answer(request, response, replica, streams).catch(() => response.writeHead(400).end());
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  replica: Replica,
  streams: Map<string, Stream>,
): Promise<void> {
  const { pathname, search } = new URL(String(request.url), 'http://localhost');
  const body = await text(request);
  if (request.method === 'PUT') await create(pathname, request, body, replica, streams);
  const stream = streams.get(pathname);
  if (stream && request.method === 'POST') await append(stream, request, body, replica);
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  const query = search === '' ? '?offset=-1' : search;
  const headers = { ...CREDENTIAL, ...conditionOf(request) };
  const url = `${replica.api}/holdfast/v1/runs/${stream?.lease.run ?? newRunId()}/stream${query}`;
  const read = await fetch(url, { method: isRead ? String(request.method) : 'HEAD', headers });
  const status = isRead || read.status === 404 ? read.status : request.method === 'PUT' ? 201 : 204;
  response.writeHead(status, Object.fromEntries(read.headers));
  if (!isRead || !read.body) return void response.end();
  await pipeline(read.body, response).catch(() => {});
}

const conditionOf = ({ headers }: IncomingMessage): Record<string, string> => {
  const condition = headers['if-none-match'];
  return condition === undefined ? {} : { 'if-none-match': condition };
};

async function create(
  path: string,
  request: IncomingMessage,
  body: string,
  replica: Replica,
  streams: Map<string, Stream>,
): Promise<void> {
  if (streams.has(path)) return;
  const lease = await replica.store.acquire(newRunId(), OWNER);
  await replica.store.append(lease, [{ seq: 0, header: HEADER, events: [] }]);
  const contentType = String(request.headers['content-type'] ?? 'application/octet-stream');
  const stream = { lease, contentType, seq: 0, closed: false };
  streams.set(path, stream);
  await append(stream, request, body, replica);
}

async function append(
  stream: Stream,
  { headers }: IncomingMessage,
  body: string,
  { store }: Replica,
): Promise<void> {
  const { lease, contentType } = stream;
  const messages = body === '' ? [] : contentType.startsWith('application/json') ? messagesIn(body) : [body];
  const events = messages.map((message) => ({ deltas: [], payload: JSON.stringify(message) }));
  if (events.length > 0 && !stream.closed) {
    stream.seq += events.length;
    await store.append(lease, [{ seq: stream.seq, events }]);
  }
  if (headers['stream-closed'] !== 'true') return;
  stream.closed = true;
  await store.append(lease, [{ seq: ++stream.seq, events: [{ deltas: [], payload: '[DONE]' }] }]);
  await store.finish(lease, { status: 'complete', at_ms: Date.now() });
}

/** A top-level array is a batch of messages. */
function messagesIn(body: string): readonly unknown[] {
  const parsed: unknown = JSON.parse(body);
  return Array.isArray(parsed) ? parsed : [parsed];
}
