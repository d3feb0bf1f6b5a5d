import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type ApiError, apiError } from '../../lib/errors.ts';
import type { MemoryBudget, MemoryShare } from '../../lib/memory-budget.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Memory for the body and the answer. Only on routes that read bodies. */
    memory: MemoryShare;
  }
}

/** A body is held as text and parsed, and as bytes while it is received or sent. */
const BYTES_HELD_PER_BYTE = 3;
/** The maximum buffer before any data has arrived: an announced length proves nothing. */
const BEGINNING_BYTES_MAX = 65_536;
/** Generous growth is cheap, because untouched pages take no memory. */
const GROWTH = 4;
/** A connection can deliver 2 MB in one turn of the event loop, which would delay all others. */
const TURN_BYTES_MAX = 131_072;

/**
 * Makes the routes of this scope accept JSON only, as raw bytes for `readJsonBody`. Memory is accounted as the bytes
 * arrive and released when the response closes; {@link holdingBody} extends that.
 */
export function takeJsonBodies(scope: FastifyInstance, budget: MemoryBudget): void {
  scope.addHook('onRequest', (request, reply, done) => {
    const memory = budget.share();
    request.memory = memory;
    reply.raw.once('close', () => memory.release());
    const length = lengthOf(request);
    // Larger bodies get their own error later.
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

/** Runs `work` and accounts for the body until it ends, even if the client disconnects. */
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

/** Moves the body's bytes out of the request. */
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
  // A single buffer: many small chunks would take a hundred times the memory.
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
    // Discards the rest of the body.
    payload.resume();
    if (error) {
      request.memory.drop();
      done(error);
    } else done(null, bytes.subarray(0, length));
  };
  payload.on('data', onData).on('end', onEnd).on('error', onError);
}
