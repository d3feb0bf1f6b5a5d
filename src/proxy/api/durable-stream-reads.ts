import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RunId } from '../../checkpoint/store.ts';
import { ClientResponse, responseTurn } from '../downstream/client-response.ts';
import { KeptAlive } from '../downstream/kept-alive.ts';
import { ReaderNote } from '../resume/reader-note.ts';
import { StorePoll } from '../resume/store-poll.ts';
import { type MessageBatch, StoredMessages } from '../resume/stored-messages.ts';
import type { ApiContext } from './api-context.ts';
import {
  arrayOf,
  batchFrames,
  etagOf,
  matches,
  nextCursor,
  positionHeaders,
  type StreamRead,
} from './durable-stream.ts';
import { beginUnattended } from './return.ts';
import { PRIVATE } from './run-documents.ts';

/** How long a long poll waits for more messages. */
const LONG_POLL_MS = 20_000;
/** An SSE response ends after this time; the reader then asks for the rest. */
const SSE_MS = 60_000;

/** Browsers must not sniff a message as another type, or expose it to another origin that embeds it. */
const BROWSER_HEADERS = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
};
/** An answer belongs to one credential: a cache may keep it, but must revalidate it before each use. */
const REVALIDATED = { 'cache-control': 'private, no-cache' };

/**
 * Answers a read of the Durable Streams protocol. Throws `run_not_found`, `cursor_ahead`, `too_many_runs`,
 * `memory_exhausted` and `store_unavailable` before the response has begun.
 */
export async function readDurableStream(
  run: RunId,
  read: StreamRead,
  request: FastifyRequest,
  reply: FastifyReply,
  context: ApiContext,
): Promise<void> {
  for (const [name, value] of Object.entries(BROWSER_HEADERS)) reply.raw.setHeader(name, value);
  const { owner, caller, memory } = request;
  const active = context.registry.begin(owner, caller.client, memory);
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  const signal = AbortSignal.any([gone.signal, active.signal, context.refusing]);
  try {
    const stream = new StreamReader(run, read, request, signal, context);
    if (read.live === 'sse') await stream.sendEvents(reply);
    else await stream.sendBatch(reply);
  } finally {
    active.end();
  }
}

/** Answers a `HEAD` request with the end of the stream. Throws like {@link readDurableStream}. */
export async function showDurableStream(
  run: RunId,
  { owner }: FastifyRequest,
  reply: FastifyReply,
  context: ApiContext,
): Promise<FastifyReply> {
  const end = await new StoredMessages({ run, owner }, 'end', context).next();
  const headers = { ...BROWSER_HEADERS, ...PRIVATE, 'content-type': 'application/json' };
  return reply.headers({ ...headers, ...positionHeaders(end) }).send();
}

class StreamReader {
  readonly #run: RunId;
  readonly #read: StreamRead;
  readonly #request: FastifyRequest;
  readonly #context: ApiContext;
  readonly #messages: StoredMessages;
  readonly #note: ReaderNote;
  readonly #poll: StorePoll;
  readonly #signal: AbortSignal;
  /** The run has no replica, and none can continue it for this reader. */
  #isLeftAlone = false;

  constructor(
    run: RunId,
    read: StreamRead,
    request: FastifyRequest,
    signal: AbortSignal,
    context: ApiContext,
  ) {
    const { owner } = request;
    this.#run = run;
    this.#read = read;
    this.#request = request;
    this.#context = context;
    this.#signal = signal;
    this.#messages = new StoredMessages({ run, owner }, read.start, context);
    this.#note = new ReaderNote({ run, owner }, context);
    this.#poll = new StorePoll(context, signal, { run });
  }

  /** Sends one batch; a long poll waits for it. */
  async sendBatch(reply: FastifyReply): Promise<void> {
    const { live, start } = this.#read;
    let batch = await this.#next();
    const until_ms = this.#context.time.now() + LONG_POLL_MS;
    while (live && isQuiet(batch) && !this.#signal.aborted && this.#context.time.now() < until_ms) {
      await this.#poll.rest();
      batch = await this.#next();
    }
    const isEmpty = live !== undefined && batch.messages.length === 0 && batch.isUpToDate;
    const isTail = start === 'end' || isEmpty;
    const etag = etagOf(this.#run, batch);
    reply.headers({
      ...(isTail ? PRIVATE : { ...REVALIDATED, etag }),
      ...positionHeaders(batch),
      ...(!batch.isClosed && { 'stream-cursor': this.#cursor }),
    });
    if (isEmpty) reply.code(204).send();
    else if (!isTail && matches(this.#request.headers['if-none-match'], etag)) reply.code(304).send();
    // A buffer, because Fastify adds a charset to strings, which JSON doesn't have.
    else reply.header('content-type', 'application/json').send(Buffer.from(arrayOf(batch.messages)));
  }

  /** Sends batches until the stream closes or the reader must ask again. */
  async sendEvents(reply: FastifyReply): Promise<void> {
    const first = await this.#next();
    const { configuration, time } = this.#context;
    reply.hijack();
    if (!(await responseTurn(reply.raw))) return;
    const client = new ClientResponse(reply.raw, configuration.limits);
    const breakOff = () => client.destroy();
    this.#signal.addEventListener('abort', breakOff, { once: true });
    client.open({ 'content-type': 'text/event-stream' });
    const stream = new KeptAlive(client, time, configuration.delivery.keepalive_ms);
    const until_ms = time.now() + SSE_MS;
    try {
      await stream.write(batchFrames(first, this.#cursor));
      for (let batch: MessageBatch | undefined = first; !batch.isClosed && time.now() < until_ms; ) {
        if (batch.isUpToDate) await this.#poll.rest();
        batch = await this.#poll.patiently(() => this.#next());
        if (!batch || this.#signal.aborted) return breakOff();
        if (!isQuiet(batch)) await stream.write(batchFrames(batch, this.#cursor));
      }
      client.end('');
    } finally {
      stream.close();
      this.#signal.removeEventListener('abort', breakOff);
    }
  }

  async #next(): Promise<MessageBatch> {
    const { stored: before } = this.#messages;
    const batch = await this.#messages.next();
    const { stored } = this.#messages;
    if (stored?.status !== 'running' || stored === before) return batch;
    this.#note.renew();
    if (batch.messages.length > 0) this.#poll.hurry();
    if (this.#read.live && stored.holder.state !== 'alive' && !this.#isLeftAlone) await this.#continueRun();
    return batch;
  }

  /** The outcome reaches this reader through the store. */
  async #continueRun(): Promise<void> {
    const { registry, store } = this.#context;
    const { owner, caller, headers } = this.#request;
    if (registry.holder(this.#run)) return;
    const stored = await store.read(this.#run, owner, 0);
    if (!stored) return;
    const orphan = { run: this.#run, owner, stored, caller, headers };
    this.#isLeftAlone = (await beginUnattended(orphan, this.#context)) === 'never';
  }

  get #cursor(): string {
    const { time, random } = this.#context;
    return nextCursor(this.#read.cursor, time.wall(), random());
  }
}

/** Nothing new for the reader. */
const isQuiet = ({ from, to, isClosed }: MessageBatch): boolean => from.seq === to.seq && !isClosed;
