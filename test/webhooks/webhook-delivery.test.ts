import { PassThrough as Pipe } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished, vi } from 'vitest';
import { WEBHOOK_EVENTS, type WebhookEvent } from '../../src/config/webhook-schema.ts';
import { createLogger } from '../../src/lib/log.ts';
import { webhookKey } from '../../src/lib/standard-webhook.ts';
import { systemTime, type Time } from '../../src/lib/time.ts';
import { Metrics } from '../../src/metrics/metrics.ts';
import { createUndiciTransport } from '../../src/proxy/upstream/undici-transport.ts';
import {
  ATTEMPT_MS,
  ATTEMPTS_MAX,
  WAIT_MAX_MS,
  WAITING_MAX,
  WebhookDelivery,
} from '../../src/webhooks/webhook-delivery.ts';
import { startProvider } from '../http-peer.ts';
import { NO_UPSTREAM_URL } from '../replica.ts';
import { startReceiver, WEBHOOK_SECRET } from './receiver.ts';

/** A clock without waits between attempts, unless they are held. The test decides when an attempt times out. */
class HurriedTime implements Time {
  readonly waits_ms: number[] = [];
  readonly #clocks = new Set<() => void>();
  isHeld = false;

  now = systemTime.now;
  wall = systemTime.wall;

  after(delay_ms: number, callback: () => void): () => void {
    if (delay_ms === ATTEMPT_MS) {
      this.#clocks.add(callback);
      return () => this.#clocks.delete(callback);
    }
    this.waits_ms.push(delay_ms);
    if (this.isHeld) return () => {};
    const turn = setImmediate(callback);
    return () => clearImmediate(turn);
  }

  /** Times out the attempt under way. */
  runOut(): void {
    for (const callback of this.#clocks) callback();
  }
}

interface Deployed {
  readonly delivery: WebhookDelivery;
  readonly time: HurriedTime;
  /** How many events had each outcome, in the order of the labels. */
  outcomes(): Promise<readonly number[]>;
  log(): Promise<string>;
}

function deploy(url: string, events: readonly WebhookEvent[] = WEBHOOK_EVENTS): Deployed {
  const metrics = new Metrics();
  const time = new HurriedTime();
  const lines = new Pipe();
  const transport = createUndiciTransport();
  const key = webhookKey(WEBHOOK_SECRET);
  if (!key) throw new Error('the secret of the tests is none');
  const endpoint = { path: 'webhooks[0]', url, key, events: new Set(events) };
  const context = { transport, metrics, time, random: () => 0, log: createLogger('trace', lines) };
  const delivery = new WebhookDelivery([endpoint], context);
  onTestFinished(async () => {
    await delivery.close();
    await transport.close();
  });
  return {
    delivery,
    time,
    async outcomes() {
      const { values } = await metrics.webhooks.get();
      return ['delivered', 'refused', 'dropped'].map(
        (outcome) => values.find(({ labels }) => labels.outcome === outcome)?.value ?? 0,
      );
    },
    log: () => text(lines.end()),
  };
}

const message = (nth = 1, type: WebhookEvent = 'task.paused') => ({
  id: `msg_${nth}`,
  type,
  body: JSON.stringify({ type, timestamp: '2026-11-28T00:00:00.000Z', data: { task: `T${nth}` } }),
});

it('an event reaches its endpoint, signed, if the endpoint asks for its type', async () => {
  const receiver = await startReceiver();
  const { delivery, outcomes } = deploy(receiver.url, ['task.paused']);
  delivery.send(message(1, 'task.resumed'));
  delivery.send(message(2));
  const { id, payload, request, answer } = await receiver.next();
  expect([id, payload.data, request.method, request.url]).toEqual([
    'msg_2',
    { task: 'T2' },
    'POST',
    '/hooks?token=t-1',
  ]);
  expect(request.headers).toMatchObject({ 'content-type': 'application/json' });
  expect(request.headers['user-agent']).toMatch(/^holdfast\//);
  answer(204);
  await vi.waitFor(async () => expect(await outcomes()).toEqual([1, 0, 0]));
});

it('a receiver that fails twice is asked three times, with the same id, and after growing waits', async () => {
  const receiver = await startReceiver();
  const { delivery, time, outcomes } = deploy(receiver.url);
  delivery.send(message());
  const ids: string[] = [];
  for (const status of [500, 429, 200]) {
    const { id, answer } = await receiver.next();
    ids.push(id);
    answer(status);
  }
  await vi.waitFor(async () => expect(await outcomes()).toEqual([1, 0, 0]));
  expect(ids).toEqual(['msg_1', 'msg_1', 'msg_1']);
  expect(time.waits_ms).toEqual([1000, 4000]);
});

it('a receiver is given the time that it asks for, up to a limit', async () => {
  const receiver = await startReceiver();
  const { delivery, time, outcomes } = deploy(receiver.url);
  delivery.send(message());
  (await receiver.next()).answer(503, { 'retry-after': '120' });
  (await receiver.next()).answer(503, { 'retry-after': '86400' });
  (await receiver.next()).answer(200);
  await vi.waitFor(async () => expect(await outcomes()).toEqual([1, 0, 0]));
  expect(time.waits_ms).toEqual([120_000, WAIT_MAX_MS]);
});

it('an attempt that hangs is given up, and made again', async () => {
  const receiver = await startReceiver();
  const { delivery, time, outcomes } = deploy(receiver.url);
  delivery.send(message());
  const hanging = await receiver.next();
  const closed = new Promise((resolve) => hanging.response.once('close', resolve));
  time.runOut();
  await closed;
  (await receiver.next()).answer(200);
  await vi.waitFor(async () => expect(await outcomes()).toEqual([1, 0, 0]));
});

it('an answer counts by its status, although its body never ends', async () => {
  const receiver = await startReceiver();
  const { delivery, time, outcomes } = deploy(receiver.url);
  delivery.send(message());
  const { response } = await receiver.next();
  const closed = new Promise((resolve) => response.once('close', resolve));
  response.writeHead(200).write('x'.repeat(20_000));
  await closed;
  expect(time.waits_ms).toEqual([]);
  await vi.waitFor(async () => expect(await outcomes()).toEqual([1, 0, 0]));
});

it('a redirect is not followed: the event counts as refused', async () => {
  let asked = 0;
  const elsewhere = await startProvider((_request, response) => {
    asked++;
    response.end();
  });
  const receiver = await startReceiver();
  const { delivery, outcomes } = deploy(receiver.url);
  delivery.send(message());
  (await receiver.next()).answer(307, { location: elsewhere });
  await vi.waitFor(async () => expect(await outcomes()).toEqual([0, 1, 0]));
  expect(asked).toBe(0);
});

it.each([400, 401, 404, 410])('a %i is final, and said in the log without secrets', async (status) => {
  const receiver = await startReceiver();
  const { delivery, outcomes, log } = deploy(receiver.url);
  delivery.send(message());
  (await receiver.next()).answer(status);
  await vi.waitFor(async () => expect(await outcomes()).toEqual([0, 1, 0]));
  const line = await log();
  expect(JSON.parse(line)).toMatchObject({
    webhook: 'webhooks[0]',
    receiver: new URL(receiver.url).host,
    id: 'msg_1',
    type: 'task.paused',
    outcome: 'refused',
    status,
    attempts: 1,
  });
  for (const secret of ['whsec_', 'hooks?', 't-1']) expect(line).not.toContain(secret);
});

it('an endpoint that is not there is asked eight times in a quarter of an hour, and the event dropped', async () => {
  const { delivery, time, outcomes, log } = deploy(NO_UPSTREAM_URL);
  delivery.send(message());
  await vi.waitFor(async () => expect(await outcomes()).toEqual([0, 0, 1]));
  expect(time.waits_ms).toEqual([1000, 4000, 16_000, 64_000, 256_000, 300_000, 300_000]);
  expect(await log()).toContain(`"outcome":"dropped","code":"ECONNREFUSED","attempts":${ATTEMPTS_MAX}`);
});

it('one request is made at a time, and an event that waits does not hold back the next one', async () => {
  const receiver = await startReceiver();
  const { delivery, time, outcomes } = deploy(receiver.url);
  time.isHeld = true;
  for (const nth of [1, 2, 3]) delivery.send(message(nth));
  const first = await receiver.next();
  const second = receiver.next();
  let isSecondThere = false;
  void second.then(() => {
    isSecondThere = true;
  });
  expect([first.id, isSecondThere]).toEqual(['msg_1', false]);
  first.answer(503);
  expect((await second).id).toBe('msg_2');
  (await second).answer(200);
  (await receiver.next()).answer(200);
  await vi.waitFor(async () => expect(await outcomes()).toEqual([2, 0, 0]));
});

it('what does not fit is dropped, and said so', async () => {
  const receiver = await startReceiver();
  const { delivery, outcomes, log } = deploy(receiver.url);
  for (let nth = 1; nth <= WAITING_MAX + 2; nth++) delivery.send(message(nth));
  expect(await outcomes()).toEqual([0, 0, 2]);
  expect(await log()).toContain(`"id":"msg_${WAITING_MAX + 1}"`);
});

it('in a hurry what waits is tried once more at once, and then dropped', async () => {
  const receiver = await startReceiver();
  const { delivery, time, outcomes } = deploy(receiver.url);
  time.isHeld = true;
  for (const nth of [1, 2]) {
    delivery.send(message(nth));
    (await receiver.next()).answer(503);
  }
  await vi.waitFor(() => expect(time.waits_ms).toHaveLength(2));
  const settled = delivery.settled(60_000);
  delivery.hurry();
  (await receiver.next()).answer(200);
  (await receiver.next()).answer(503);
  await settled;
  expect(await outcomes()).toEqual([1, 0, 1]);
});

it('what is under way when it closes is dropped, and nothing is asked any more', async () => {
  const receiver = await startReceiver();
  const { delivery, outcomes } = deploy(receiver.url);
  for (const nth of [1, 2]) delivery.send(message(nth));
  const { response } = await receiver.next();
  const closed = new Promise((resolve) => response.once('close', resolve));
  await delivery.close();
  await closed;
  expect(await outcomes()).toEqual([0, 0, 2]);
});
