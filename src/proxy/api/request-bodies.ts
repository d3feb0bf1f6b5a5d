import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type ApiError, apiError } from '../../lib/errors.ts';
import type { MemoryBudget, MemoryShare } from '../../lib/memory-budget.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What the body holds, and the answer. Only where bodies are read. */
    memory: MemoryShare;
  }
}

/** A body is held as text, and parsed; while it comes, and is sent on, as bytes too. */
const BYTES_HELD_PER_BYTE = 3;
/** What is made room for before any of it has come: that much is coming says nothing yet. */
const BEGINNING_BYTES_MAX = 65_536;
/** Pages that nothing was written to yet take no memory. */
const GROWTH = 4;
/** A connection can bring 2 MB in one turn of the event loop; the others would wait for all of them. */
const TURN_BYTES_MAX = 131_072;

/**
 * Has the routes of this scope take JSON only, as the bytes that came, for `readJsonBody`. What they hold is counted as it
 * comes, and given back when the response is closed; {@link holdingBody} holds it for longer.
 */
export function takeJsonBodies(scope: FastifyInstance, budget: MemoryBudget): void {
  scope.addHook('onRequest', (request, reply, done) => {
    const memory = budget.share();
    request.memory = memory;
    reply.raw.once('close', () => memory.release());
    const length = lengthOf(request);
    // A larger one is refused for what it is.
    if (length <= request.routeOptions.bodyLimit) budget.require(BYTES_HELD_PER_BYTE * length);
    done();
  });
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('application/json', (request, payload, done) => {
    collect(request, payload, (error, body) => {
      if (!error && request.headers['content-encoding'] !== undefined)
        done(apiError('unsupported_media_type'));
      else done(error, body);
    });
  });
}

/** Does what the request asks for; its body counts until that is done, even if its client is gone. */
export async function holdingBody<Result>(
  { memory }: FastifyRequest,
  work: () => Promise<Result>,
): Promise<Result> {
  memory.hold();
  try {
    return await work();
  } finally {
    memory.release();
  }
}

/** Takes the bytes of the body from its request, which needs them no longer. */
export function takeBody(request: FastifyRequest): Buffer | undefined {
  const body = request.body as Buffer | undefined;
  request.body = undefined;
  return body;
}

const lengthOf = ({ headers }: FastifyRequest): number => Number(headers['content-length'] ?? 0);

function collect(
  request: FastifyRequest,
  payload: IncomingMessage,
  done: (error: ApiError | null, body?: Buffer) => void,
): void {
  const limit_bytes = request.routeOptions.bodyLimit;
  const announced = lengthOf(request);
  if (announced > limit_bytes) {
    done(apiError('body_too_large', { limit_bytes }));
    return;
  }
  // In one piece: a body that came as many would take a hundred times as much.
  let bytes = Buffer.allocUnsafe(Math.min(announced, BEGINNING_BYTES_MAX));
  let length = 0;
  let turn_bytes = 0;

  const onData = (piece: Buffer) => {
    const refusal = refusalOf(piece);
    if (refusal) {
      end(refusal);
      return;
    }
    if (length + piece.length > bytes.length) {
      const room = Math.min(announced || limit_bytes, GROWTH * bytes.length);
      const larger = Buffer.allocUnsafe(Math.max(room, length + piece.length));
      bytes.copy(larger, 0, 0, length);
      bytes = larger;
    }
    length += piece.copy(bytes, length);
    turn_bytes += piece.length;
    if (turn_bytes < TURN_BYTES_MAX) return;
    turn_bytes = 0;
    payload.pause();
    setImmediate(() => payload.resume());
  };
  const refusalOf = (piece: Buffer): ApiError | undefined => {
    if (length + piece.length > limit_bytes) return apiError('body_too_large', { limit_bytes });
    try {
      request.memory.take(BYTES_HELD_PER_BYTE * piece.length);
      return undefined;
    } catch (error) {
      return error as ApiError;
    }
  };
  const onEnd = () => end(null);
  const onError = () => end(apiError('bad_request'));
  const end = (error: ApiError | null) => {
    payload.off('data', onData).off('end', onEnd).off('error', onError);
    // What else comes is discarded.
    payload.resume();
    if (error) {
      request.memory.drop();
      done(error);
    } else done(null, bytes.subarray(0, length));
  };
  payload.on('data', onData).on('end', onEnd).on('error', onError);
}
