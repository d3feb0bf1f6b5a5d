import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { apiError } from '../lib/errors.ts';
import type { Time } from '../lib/time.ts';
import type { RunBoard } from './run-board.ts';
import { StatusFeed } from './status-feed.ts';
import type { StatusReport } from './status-report.ts';

/** Nothing but what this port serves itself, nowhere but in a page of its own, and nothing is kept. */
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
/** For `EventSource`, which comes back by itself. */
const RECONNECT = 'retry: 2000\n\n';

export interface StatusContext {
  readonly board: RunBoard;
  readonly report: StatusReport;
  readonly time: Time;
  /** The response to `GET /` for clients that do not ask for HTML. */
  brief(): object;
}

/** The status page and what it is made of; see docs/status-page.md. */
export function statusRoutes(scope: FastifyInstance, context: StatusContext): void {
  const { board, report, brief } = context;
  const feed = new StatusFeed(context);
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
    return reply.send(brief());
  });
  scope.get<{ Params: { name: string } }>('/assets/:name', ({ params }, reply) =>
    sendFile(params.name, reply),
  );

  scope.get('/status', () => report.read());
  scope.get('/runs', async () => board.runs());
  scope.get<{ Params: { id: string } }>('/runs/:id', async ({ params }) => {
    const detail = board.detail(params.id);
    if (!detail) throw apiError('run_not_found');
    return detail;
  });
  scope.get('/tasks', async () => board.tasks.read());
  scope.get<{ Params: { id: string } }>('/tasks/:id', async ({ params }) => {
    const detail = board.tasks.detail(params.id);
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
