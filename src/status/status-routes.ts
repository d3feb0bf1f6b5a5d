import { readdirSync, readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { extname, join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { apiError } from '../lib/errors.ts';
import type { RunDetail, RunsDocument, StatusDocument, TaskDetail, TasksDocument } from './snapshot.ts';

/** The page may load only what this port serves, can't be framed, and isn't cached. */
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-store',
};

const FEED_HEADERS = { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' };
/** Reconnection delay for `EventSource`. */
const RECONNECT = 'retry: 2000\n\n';

/** The data of the status page. */
export interface StatusSource {
  /** The response to `GET /` for clients that don't ask for HTML. */
  brief(): Promise<object>;
  status(): Promise<StatusDocument>;
  runs(): Promise<RunsDocument>;
  /** Undefined if the run isn't remembered. */
  run(id: string): Promise<RunDetail | undefined>;
  tasks(): Promise<TasksDocument>;
  task(id: string): Promise<TaskDetail | undefined>;
  readonly feed: ViewerFeed;
}

/** Sends events to viewers. */
export interface ViewerFeed {
  readonly isFull: boolean;
  /** Sends a snapshot at once. The headers of `response` must have been sent. */
  join(response: ServerResponse): Promise<void>;
  close(): void;
}

/** The status page and its data; see docs/status-page.md. */
export function statusRoutes(scope: FastifyInstance, source: StatusSource): void {
  const { feed } = source;
  const files = readPageFiles();

  scope.addHook('onRequest', async (_request: FastifyRequest, reply: FastifyReply) => {
    reply.headers(HEADERS);
  });
  scope.addHook('preClose', async () => feed.close());

  const sendFile = (name: string, reply: FastifyReply) => {
    const file = files.get(name);
    if (!file) return reply.callNotFound();
    return reply.type(file.type).send(file.bytes);
  };

  scope.get('/', (request, reply) => {
    reply.header('vary', 'accept');
    if (request.headers.accept?.includes('text/html')) return sendFile('index.html', reply);
    return source.brief();
  });
  scope.get<{ Params: { name: string } }>('/assets/:name', ({ params }, reply) =>
    sendFile(params.name, reply),
  );

  scope.get('/status', () => source.status());
  scope.get('/runs', () => source.runs());
  scope.get<{ Params: { id: string } }>('/runs/:id', async ({ params }) => {
    const detail = await source.run(params.id);
    if (!detail) throw apiError('run_not_found');
    return detail;
  });
  scope.get('/tasks', () => source.tasks());
  scope.get<{ Params: { id: string } }>('/tasks/:id', async ({ params }) => {
    const detail = await source.task(params.id);
    if (!detail) throw apiError('task_not_found');
    return detail;
  });
  scope.get('/runs/events', { exposeHeadRoute: false }, async (_request, reply) => {
    if (feed.isFull) throw apiError('too_many_viewers');
    reply.headers(FEED_HEADERS).hijack();
    reply.raw.writeHead(200, reply.getHeaders() as Record<string, string>);
    reply.raw.write(RECONNECT);
    await feed.join(reply.raw);
  });
}

const DIRECTORY = join(import.meta.dirname, 'page');

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

interface PageFile {
  readonly type: string;
  readonly bytes: Buffer;
}

/** The page and its parts, by name. No other file can be read. */
const readPageFiles = (): ReadonlyMap<string, PageFile> =>
  new Map(
    readdirSync(DIRECTORY).map((name) => [
      name,
      {
        type: TYPES[extname(name)] ?? 'application/octet-stream',
        bytes: readFileSync(join(DIRECTORY, name)),
      },
    ]),
  );
