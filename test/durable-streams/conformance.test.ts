import { expect, test } from 'vitest';
import { startProvider } from '../http-peer.ts';
import { deploy } from '../proxy/run-deployment.ts';
import { creatingFront } from './creating-front.ts';
import { conformanceSuite, runSuite } from './suite.ts';

const SUITE_MAX_MS = 300_000;

/**
 * The cases that read JSON streams. Of the others, some create, append, fork, produce or subscribe, which runs don't
 * support; the rest compare the bytes of streams that aren't JSON.
 */
const READING = [
  'JSON SSE catch-up pairs every data event with a control event',
  'head-closed-stream: HEAD returns Stream-Closed: true header',
  'head-open-stream-no-closed-header: HEAD on open stream does NOT have Stream-Closed header',
  'longpoll-closed-returns-204-with-header: Returns 204 with Stream-Closed: true',
  'longpoll-closed-stream-immediate: No wait when closed stream at tail, returns immediately',
  'offset-now-on-closed-stream: offset=now on closed stream returns Stream-Closed: true',
  'read-closed-stream-partial-no-closed: Partial read of closed stream does NOT include Stream-Closed',
  'should NOT include Stream-SSE-Data-Encoding header for application/json streams',
  'should accept live=sse query parameter for application/json',
  'should concatenate multiple appends into single array',
  'should echo cursor and handle collision with jitter',
  'should generate ETag on GET responses',
  'should generate Stream-Cursor header on long-poll responses',
  'should generate streamCursor in SSE control events',
  'should generate unique, monotonically increasing offsets',
  'should generate unique, monotonically increasing offsets in SSE mode',
  'should handle JSON payloads with embedded newlines safely',
  'should handle SSE for empty stream with correct offset',
  'should handle content-type with charset parameter',
  'should handle cursor collision with jitter in SSE mode',
  'should handle large payload appropriately',
  'should handle mixed batching - single values, arrays, and nested arrays',
  'should handle mixed single values and arrays',
  'should handle various JSON value types',
  'should have correct SSE headers (no Content-Length, proper Cache-Control)',
  'should include Cache-Control: no-store on HEAD responses',
  'should include Cross-Origin-Resource-Policy header on GET responses',
  'should include X-Content-Type-Options: nosniff on GET responses',
  'should include X-Content-Type-Options: nosniff on HEAD responses',
  'should include X-Content-Type-Options: nosniff on SSE responses',
  'should include X-Content-Type-Options: nosniff on long-poll responses',
  'should include security headers on error responses',
  'should preserve JSON structure and nesting',
  'should receive data with offset=now long-poll when appended',
  'should reject empty offset parameter',
  'should reject malformed offset (contains comma)',
  'should reject multiple offset parameters',
  'should reject offset with spaces',
  'should require offset parameter for SSE mode',
  'should require offset parameter for long-poll',
  'should return 304 Not Modified for matching If-None-Match',
  'should return 404 for offset=now on non-existent stream',
  'should return 404 for offset=now with SSE on non-existent stream',
  'should return 404 for offset=now with long-poll on non-existent stream',
  'should return Stream-Cursor, Stream-Up-To-Date and Stream-Next-Offset on 204 timeout',
  'should return correct tail offset for offset=now',
  'should return empty JSON array for offset=now on JSON streams',
  'should return new ETag after data changes',
  'should return stream content-type on GET',
  'should return tail offset',
  'should return text/event-stream content-type for SSE requests',
  'should send control events with offset',
  'should send upToDate flag in SSE control events when caught up',
  'should store arrays as single messages',
  'should store arrays as values when double-wrapped',
  'should store nested arrays as single messages',
  'should store primitive arrays as single messages',
  'should stream data events via SSE',
  'should support offset=now with SSE mode',
  'should support offset=now with SSE on empty stream',
  'should support offset=now with long-poll mode (waits for data)',
  'should support reconnection with last known offset',
  'should work with client json() iterator',
  'should wrap JSON data in arrays for SSE and produce valid JSON',
  'should wrap single JSON value in array',
  'sse-closed-stream-connection-closes: Connection closes after final event',
  'sse-closed-stream-control-event: Final control event has streamClosed: true',
  'sse-closed-stream-no-cursor: streamCursor omitted when streamClosed is true',
  'sse-live-reader-receives-final-append-on-close: live reader at tail receives data appended atomically with the close',
];

test('the read side is what the conformance suite of Durable Streams wants', {
  timeout: SUITE_MAX_MS,
}, async ({ skip }) => {
  const suite = await conformanceSuite();
  if ('missing' in suite) return skip(suite.missing);
  const { replica } = await deploy({ follow: undefined as never });
  const url = await startProvider(creatingFront(replica));
  const results = await runSuite(suite.path, url, READING);
  const known = results.filter(({ title }) => READING.includes(title));
  expect(known.filter(({ isPassed }) => !isPassed)).toEqual([]);
  expect(new Set(known.map(({ title }) => title))).toEqual(new Set(READING));
});
