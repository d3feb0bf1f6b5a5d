import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { MemoryStore } from '../../src/checkpoint/memory/store.ts';
import { systemTime, type Time } from '../../src/lib/time.ts';
import { Metrics } from '../../src/metrics/metrics.ts';
import { RunBoard } from '../../src/status/run-board.ts';
import type { FeedSnapshot, FeedUpdate } from '../../src/status/snapshot.ts';
import { StatusFeed } from '../../src/status/status-feed.ts';
import { StatusReport } from '../../src/status/status-report.ts';
import { connect } from '../http-peer.ts';
import { openFeed } from './feed-reader.ts';
import { fleetOf } from './fleet-of.ts';
import { attempt, begin, runId } from './observed.ts';

/** A clock that runs faster, and counts its callbacks. */
class FastTime implements Time {
  calls = 0;
  readonly #speed: number;
  readonly wall = systemTime.wall;

  constructor(speed: number) {
    this.#speed = speed;
  }

  readonly now = (): number => systemTime.now() * this.#speed;

  after(delay_ms: number, callback: () => void): () => void {
    return systemTime.after(delay_ms / this.#speed, () => {
      this.calls++;
      callback();
    });
  }
}

/** 14 MB in total, which is more than the buffers of a connection hold. */
const RUNS = 3500;
const UPSTREAM = 'u'.repeat(4000);

async function serveFeed(time: Time) {
  const board = new RunBoard({ time, content: false });
  const store = new MemoryStore({ time: systemTime, ttl_ms: 1000 });
  const parts = { board, store, metrics: new Metrics(), time, content: false };
  const report = new StatusReport({
    ...parts,
    started_at_ms: time.wall(),
    fleet: fleetOf({ notes: store.notes, time, name: 'alone', isShared: false }),
    links: () => ({}),
    api: () => ({ url: '', try: '', resume: '' }),
    targets: () => [],
    draining: () => false,
    active: () => 0,
  });
  const feed = new StatusFeed({ board, report, time });
  const server = http.createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    void feed.join(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    feed.close();
    server.closeAllConnections();
    server.close();
  });
  return { board, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test('a viewer that takes nothing is dropped, gets no more than one message, and does not hold up others', async () => {
  const { board, url } = await serveFeed(new FastTime(5));
  const quick = await openFeed(url);
  await quick.next('snapshot');
  const runs = Array.from({ length: RUNS }, (_, count) =>
    begin(board, { run: runId(count), upstream: UPSTREAM }),
  );
  const slow = await connect(url);
  slow.pause();
  slow.write('GET /runs/events HTTP/1.1\r\nhost: x\r\n\r\n');
  const dropped = once(slow, 'close');

  for (const { watch } of runs.slice(0, 100)) watch.attempt(attempt(1));
  const update = await quick.until<FeedUpdate>('update', ({ changed }) => changed !== undefined);
  expect(update.changed).toHaveLength(100);

  // Read only after the feed has given the viewer up; all that arrives then is what was buffered.
  for (let count = 0; count < 15; count++) await quick.until('update', () => true);
  let bytes = 0;
  slow.on('data', (piece: Buffer) => {
    bytes += piece.length;
  });
  slow.resume();
  await dropped;
  expect(bytes).toBeLessThan(RUNS * UPSTREAM.length);

  // A viewer that reconnects gets everything.
  const again = await openFeed(url);
  expect((await again.next<FeedSnapshot>('snapshot')).runs.live).toHaveLength(RUNS);
}, 60_000);

test('a viewer that is behind for a moment gets everything afterwards', async () => {
  const time = new FastTime(2);
  const { board, url } = await serveFeed(time);
  for (let count = 0; count < RUNS; count++) begin(board, { run: runId(count), upstream: UPSTREAM });
  const slow = await connect(url);
  slow.pause();
  slow.write('GET /runs/events HTTP/1.1\r\nhost: x\r\n\r\n');
  // An update is due by then.
  await expect.poll(() => time.calls, { timeout: 10_000 }).toBeGreaterThan(1);
  const events: string[] = [];
  slow.on('data', (piece: Buffer) => {
    events.push(...(piece.toString('latin1').match(/event: \w+/g) ?? []));
  });
  slow.resume();
  await expect
    .poll(() => events.slice(0, 3), { timeout: 15_000 })
    .toEqual(['event: snapshot', 'event: snapshot', 'event: update']);
});

test('nothing is collected without viewers', async () => {
  const { board, url } = await serveFeed(new FastTime(10));
  expect(board.changes).toBeUndefined();
  const feed = await openFeed(url);
  await feed.next('snapshot');
  expect(board.changes).toBeDefined();
  feed.close();
  await expect.poll(() => board.changes, { timeout: 10_000 }).toBeUndefined();
});
