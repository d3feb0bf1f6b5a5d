import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HeapInspector } from '../../bench/soak/live-heap.ts';
import type { Plan } from '../provider/script.ts';
import { Deployment, modelOf, type Upstream } from './deployment.ts';
import { rawAnswer, streamRequest } from './raw-client.ts';
import { StreamClient, sendRequest } from './stream-client.ts';

const AT_ONCE_MS = 1_000;
const TEXT = 'The tide comes in twice a day, and what holds fast to the rock is there when it is out again.';
const IN_TEXT = { event: 6 } as const;

const MEGABYTE = 1024 * 1024;
const CLIENT_STALL_MS = 2_000;

let deployment: Deployment;
beforeAll(async () => {
  deployment = await Deployment.start({
    // Large enough that only backpressure holds an answer back.
    limits: { client_stall_ms: CLIENT_STALL_MS, run_bytes: 1024 * MEGABYTE },
    recovery: { retry_after_max_s: 60 },
    flags: ['--inspect=127.0.0.1:0'],
  });
});
afterAll(() => deployment.close());

const request = (upstream: Upstream, question: string) => streamRequest(modelOf(upstream), question);

/** Resolves once the log, from line `from` on, says that a run has ended; fails if the run wasn't cancelled. */
async function cancelled(from: number): Promise<void> {
  const ended = await deployment.holdfast.logged(({ msg }) => msg === 'run ended', from);
  expect(ended.outcome).toBe('cancelled');
}

describe('a client that leaves takes its upstream request with it', () => {
  const moments: [string, Plan][] = [
    ['while text comes', { parts: [{ text: TEXT.repeat(20) }], delay_ms: 10 }],
    ['while the provider is silent', { parts: [{ text: TEXT }], faults: [{ kind: 'silence', at: IN_TEXT }] }],
    [
      'while a recovery is under way',
      {
        parts: [{ text: TEXT }],
        faults: [
          { kind: 'clean_eof', at: IN_TEXT },
          { kind: 'silence', at: { event: 1 } },
        ],
      },
    ],
  ];
  const cases = (['h1', 'h2'] as const).flatMap((upstream) =>
    moments.map(([moment, plan]) => ({ upstream, moment, plan })),
  );

  test.each(cases)('$moment, over $upstream', async ({ upstream, moment, plan }) => {
    const question = `leaves ${moment}, ${upstream}`;
    deployment.plan(question, plan);
    const from = deployment.holdfast.log.length;
    const client = await StreamClient.open(deployment.holdfast.url, request(upstream, question));
    await client.read();
    const attempts = plan.faults?.length ?? 1;
    await deployment.asked(question, attempts);
    const left_ms = Date.now();
    client.leave();
    expect((await deployment.abandoned(question)) - left_ms).toBeLessThanOrEqual(AT_ONCE_MS);
    await cancelled(from);
    expect(deployment.requests(question)).toHaveLength(attempts);
  });

  test.each(['h1', 'h2'] as const)('before the headers have come, over %s', async (upstream) => {
    const question = `leaves early, ${upstream}`;
    deployment.plan(question, {
      parts: [{ text: TEXT }],
      faults: [{ kind: 'silence', at: { before_headers: true } }],
    });
    const from = deployment.holdfast.log.length;
    const sent = sendRequest(deployment.holdfast.url, request(upstream, question)).on('error', () => {});
    await deployment.asked(question);
    const left_ms = Date.now();
    sent.destroy();
    expect((await deployment.abandoned(question)) - left_ms).toBeLessThanOrEqual(AT_ONCE_MS);
    await cancelled(from);
    expect(deployment.requests(question)).toHaveLength(1);
  });

  test('during a backoff: there is no next attempt', async () => {
    const question = 'leaves in backoff';
    deployment.plan(question, {
      parts: [{ text: TEXT }],
      faults: [{ kind: 'status', status: 429, headers: { 'retry-after': '60' } }],
    });
    const { holdfast } = deployment;
    const from = holdfast.log.length;
    const sent = sendRequest(holdfast.url, request('h1', question)).on('error', () => {});
    await holdfast.logged(({ msg }) => msg === 'interrupted', from);
    const left_ms = Date.now();
    sent.destroy();
    await cancelled(from);
    expect(Date.now() - left_ms).toBeLessThanOrEqual(AT_ONCE_MS);
    expect(deployment.requests(question)).toHaveLength(1);
  });

  test('and no other: another run on the same HTTP/2 connection continues', async () => {
    deployment.plan('stays', { parts: [{ text: TEXT.repeat(4) }], delay_ms: 10 });
    deployment.plan('goes', { parts: [{ text: TEXT }], faults: [{ kind: 'silence', at: IN_TEXT }] });
    const from = deployment.holdfast.log.length;
    const staying = rawAnswer(deployment.holdfast.url, request('h2', 'stays'));
    const going = await StreamClient.open(deployment.holdfast.url, request('h2', 'goes'));
    await going.read();
    going.leave();
    await deployment.abandoned('goes');
    await cancelled(from);
    expect(await staying).toMatchObject({ text: TEXT.repeat(4), finish: 'stop', done: true });
    expect(deployment.requests('stays')).toHaveLength(1);
    await deployment.holdfast.logged(({ outcome }) => outcome === 'complete', from);
  });

  test('is counted, and leaves nothing behind', async () => {
    const metrics = await deployment.holdfast.metrics();
    const cancelled = metrics.get('holdfast_runs_total{wire="chat_completions",outcome="cancelled"}');
    expect(cancelled).toBeGreaterThan(0);
    expect(metrics.get('holdfast_client_disconnects_total')).toBe(cancelled);
    expect(metrics.get('holdfast_runs_active')).toBe(0);
  });
});

describe('a client that does not read', () => {
  const PIECE = 'x'.repeat(32 * 1024);
  const WHOLE_BYTES = 96 * MEGABYTE;
  /** The most that the sockets along the way can buffer. */
  const HELD_BYTES_MAX = 32 * MEGABYTE;
  /** The limit for live memory in Holdfast, which holds only part of what those sockets buffer. */
  const GROWTH_BYTES_MAX = 16 * MEGABYTE;
  const parts = Array.from({ length: WHOLE_BYTES / PIECE.length }, () => ({ text: PIECE }));

  let inspector: HeapInspector;
  beforeAll(async () => {
    inspector = await HeapInspector.connect(deployment.holdfast.inspectorPort);
  });
  afterAll(() => inspector.close());

  const liveBytes = async (): Promise<number> => {
    const { heap_bytes, buffers_bytes } = await inspector.live();
    return heap_bytes + buffers_bytes;
  };

  /** How much the provider sent before backpressure stopped it. */
  async function sentUntilHeldBack(question: string): Promise<number> {
    const sent = () => deployment.requests(question)[0]?.sent.bytes ?? 0;
    let before = -1;
    // There is no event for inactivity: count a provider as held back once it has sent nothing for a while.
    while (sent() !== before) {
      before = sent();
      await setTimeout(400);
    }
    return before;
  }

  test.each(['h1', 'h2'] as const)('holds back its own provider, and no other (%s)', async (upstream) => {
    const question = `never reads, ${upstream}`;
    deployment.plan(question, { parts, chunk: 'part', write: 'event' });
    const before = await liveBytes();
    const client = await StreamClient.open(deployment.holdfast.url, request(upstream, question));
    const sent = await sentUntilHeldBack(question);
    expect(sent).toBeGreaterThan(0);
    expect(sent).toBeLessThan(HELD_BYTES_MAX);
    expect((await liveBytes()) - before).toBeLessThan(GROWTH_BYTES_MAX);

    const other = `reads meanwhile, ${upstream}`;
    deployment.plan(other, { parts: [{ text: TEXT }] });
    expect(await rawAnswer(deployment.holdfast.url, request(upstream, other))).toMatchObject({
      text: TEXT,
      done: true,
    });

    // A client that never reads loses its run in the end.
    await deployment.abandoned(question);
    client.leave();
  });
});
