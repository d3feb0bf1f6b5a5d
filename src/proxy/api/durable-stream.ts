import { apiError } from '../../lib/errors.ts';
import type { Cursor } from '../resume/reader.ts';
import type { MessageBatch, Start } from '../resume/stored-messages.ts';
import { invalid } from './request-fields.ts';

/*
 * The part of the Durable Streams protocol without I/O: https://github.com/durable-streams/durable-streams,
 * PROTOCOL.md. A run is a stream of JSON messages.
 */

export const LIVE_MODES = ['long-poll', 'sse'] as const;
export type LiveMode = (typeof LIVE_MODES)[number];

/** A request to read a stream. */
export interface StreamRead {
  readonly start: Start;
  readonly live: LiveMode | undefined;
  /** The cursor of the previous response, which caches use to tell requests apart. */
  readonly cursor: number | undefined;
}

const START = '-1';
const NOW = 'now';
const SEQ_DIGITS = 15;
/** `<ordinal>.<epoch>`: sorts like the events, and identifies an event even if the store has lost data. */
const OFFSET = /^(\d{15})\.(\d{1,15}(?:-[\da-f]{1,32})?)$/;

export const offsetOf = ({ seq, epoch }: Required<Cursor>): string =>
  `${String(seq).padStart(SEQ_DIGITS, '0')}.${epoch}`;

/** Undefined if the query doesn't use this protocol. Throws `missing_field` and `invalid_field`. */
export function streamReadIn(query: Readonly<Record<string, unknown>>): StreamRead | undefined {
  const { offset, live, cursor } = query;
  if (offset === undefined && live === undefined) return undefined;
  if (offset === undefined)
    throw apiError('missing_field', {
      param: 'offset',
      expected: `an offset of this stream, ${START} or ${NOW}`,
    });
  return { start: startAt(offset), live: liveIn(live), cursor: cursorIn(cursor) };
}

function startAt(offset: unknown): Start {
  if (offset === START) return { seq: 0 };
  if (offset === NOW) return 'end';
  const [, seq, epoch] = OFFSET.exec(typeof offset === 'string' ? offset : '') ?? [];
  if (seq === undefined || epoch === undefined)
    throw invalid('offset', `the Stream-Next-Offset of an earlier answer, ${START} or ${NOW}`);
  return { seq: Number(seq), epoch };
}

function liveIn(live: unknown): LiveMode | undefined {
  if (live === undefined) return undefined;
  const mode = LIVE_MODES.find((known) => known === live);
  if (mode === undefined) throw invalid('live', `one of ${LIVE_MODES.join(', ')}`);
  return mode;
}

/** Ignores cursors in any other format. */
const cursorIn = (cursor: unknown): number | undefined =>
  typeof cursor === 'string' && /^\d{1,15}$/.test(cursor) ? Number(cursor) : undefined;

const CURSOR_EPOCH_MS = Date.UTC(2024, 9, 9);
const CURSOR_INTERVAL_MS = 20_000;
/** A new cursor is at most an hour ahead of the request's. */
const CURSOR_JITTER = 3_600_000 / CURSOR_INTERVAL_MS;

/** `random`: uniform in [0, 1). */
export function nextCursor(asked: number | undefined, now_ms: number, random: number): string {
  const current = Math.floor((now_ms - CURSOR_EPOCH_MS) / CURSOR_INTERVAL_MS);
  if (asked === undefined || asked < current) return String(current);
  return String(asked + 1 + Math.floor(random * CURSOR_JITTER));
}

/** Headers with the end of a batch. */
export const positionHeaders = ({ to, isUpToDate, isClosed }: MessageBatch): Record<string, string> => ({
  'stream-next-offset': offsetOf(to),
  ...(isUpToDate && { 'stream-up-to-date': 'true' }),
  ...(isClosed && { 'stream-closed': 'true' }),
});

/** Changes with new messages and with the closing of the stream. */
export const etagOf = (run: string, { from, to, isClosed }: MessageBatch): string =>
  `"${run}:${from.seq}:${offsetOf(to)}${isClosed ? ':closed' : ''}"`;

/** `If-None-Match`, compared weakly, as RFC 9110 says. */
export const matches = (condition: string | undefined, etag: string): boolean =>
  condition?.split(',').some((each) => ['*', etag].includes(each.trim().replace(/^W\//, ''))) ?? false;

/** An SSE event with JSON on one line. No space after `data:`, because some readers treat it as data. */
const frame = (name: string, json: string): string => `event: ${name}\ndata:${json}\n\n`;

export const arrayOf = (messages: readonly string[]): string => `[${messages.join(',')}]`;

/** `cursor`: sent unless the stream is closed. */
export function batchFrames({ messages, to, isUpToDate, isClosed }: MessageBatch, cursor: string): string {
  const data = messages.length === 0 ? '' : frame('data', arrayOf(messages));
  const control = {
    streamNextOffset: offsetOf(to),
    ...(isClosed ? { streamClosed: true } : { streamCursor: cursor }),
    ...(isUpToDate && { upToDate: true }),
  };
  return data + frame('control', JSON.stringify(control));
}
