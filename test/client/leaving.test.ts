import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { type ResumableOptions, resumable } from '../../src/client/index.ts';
import { framesOf, request, saying, words } from './answers.ts';
import { cut, Fleet, pieces, refuse, reset, type Step, stall, type Telling, whole } from './fleet.ts';

const EVENTS = saying(...words(12));
const BEGUN = 800;
const REASON = new Error('the user pressed stop');

async function start(options: ResumableOptions = {}, events = EVENTS) {
  const fleet = await Fleet.start(events);
  return { fleet, fetch: resumable({ endpoints: fleet.urls, backoffMs: 1, backoffMaxMs: 4, ...options }) };
}

/** Wraps a step to report when the client has left. */
function watched(step: Step): { step: Step; left: Promise<unknown> } {
  const left = Promise.withResolvers<void>();
  return {
    left: left.promise,
    step: (telling: Telling) => {
      telling.response.once('close', left.resolve);
      return step(telling);
    },
  };
}

const deletions = ({ asked }: Fleet) => asked.filter(({ method }) => method === 'DELETE');

describe('an abort', () => {
  test('while the stream is read: read, connection and run end', async () => {
    const { fleet, fetch } = await start();
    const { step, left } = watched(stall(BEGUN));
    fleet.script(step);
    const controller = new AbortController();
    const response = await fetch(fleet.chatUrl, request({ signal: controller.signal }));
    const reader = response.body?.getReader();
    await reader?.read();
    const reading = reader?.read();
    controller.abort(REASON);
    await expect(reading).rejects.toBe(REASON);
    await left;
    await fleet.requested(2);
    const [deletion] = deletions(fleet);
    expect(deletion?.path).toBe(`/holdfast/v1/runs/${response.headers.get('holdfast-run-id')}`);
    expect(deletion?.replica).toBe(0);
    expect(deletion?.headers.authorization).toBe('Bearer client-key');
    expect(deletion?.headers['content-type']).toBeUndefined();
  });

  test('while the stream is not read', async () => {
    const { fleet, fetch } = await start();
    const { step, left } = watched(stall(BEGUN));
    fleet.script(step);
    const controller = new AbortController();
    const response = await fetch(fleet.chatUrl, request({ signal: controller.signal }));
    controller.abort(REASON);
    await left;
    await fleet.requested(2);
    await expect(response.text()).rejects.toBe(REASON);
  });

  test('by the signal of a Request', async () => {
    const { fleet, fetch } = await start();
    const { step, left } = watched(stall(BEGUN));
    fleet.script(step);
    const controller = new AbortController();
    const response = await fetch(new Request(fleet.chatUrl, request({ signal: controller.signal })));
    controller.abort(REASON);
    await expect(response.text()).rejects.toBe(REASON);
    await left;
  });

  test('before the headers: the request ends, and the run, which is known by its key', async () => {
    const { fleet, fetch } = await start();
    const { step, left } = watched(stall());
    fleet.script(step);
    const controller = new AbortController();
    const fetching = fetch(fleet.chatUrl, request({ signal: controller.signal }));
    await fleet.requested(1);
    controller.abort(REASON);
    await expect(fetching).rejects.toBe(REASON);
    await left;
    await fleet.requested(2);
    const [asked, deletion] = fleet.asked;
    expect(deletion).toMatchObject({ method: 'DELETE', path: '/holdfast/v1/runs', replica: 0 });
    expect(deletion?.headers).toMatchObject({
      authorization: 'Bearer client-key',
      'idempotency-key': asked?.headers['idempotency-key'],
    });
    expect(deletion?.headers['content-type']).toBeUndefined();
  });

  test('before the headers: the run ends, which the caller named itself', async () => {
    const { fleet, fetch } = await start();
    fleet.script(stall());
    const controller = new AbortController();
    const headers = { authorization: 'Bearer client-key', 'holdfast-run-id': 'run_mine' };
    const fetching = fetch(fleet.chatUrl, request({ headers, signal: controller.signal }));
    await fleet.requested(1);
    controller.abort(REASON);
    await expect(fetching).rejects.toBe(REASON);
    await fleet.requested(2);
    expect(fleet.asked[1]).toMatchObject({ method: 'DELETE', path: '/holdfast/v1/runs/run_mine' });
  });

  test('before the headers: no run ends where that is not wanted', async () => {
    const { fleet, fetch } = await start({ cancelOnAbort: false });
    fleet.script(stall());
    const controller = new AbortController();
    const fetching = fetch(fleet.chatUrl, request({ signal: controller.signal }));
    await fleet.requested(1);
    controller.abort(REASON);
    await expect(fetching).rejects.toBe(REASON);
    // An unwanted DELETE would have arrived before this request.
    await (await fetch(fleet.chatUrl, request())).text();
    expect(deletions(fleet)).toEqual([]);
  });

  test('before anything: nothing is asked', async () => {
    const { fleet, fetch } = await start();
    await expect(fetch(fleet.chatUrl, request({ signal: AbortSignal.abort(REASON) }))).rejects.toBe(REASON);
    expect(fleet.asked).toHaveLength(0);
  });

  test('during a wait before the headers: at once', async () => {
    const { fleet, fetch } = await start({ backoffMs: 60_000, backoffMaxMs: 60_000 });
    // The run may have started: all that the client knows is that the connection ended.
    fleet.script(reset);
    const controller = new AbortController();
    const fetching = fetch(fleet.chatUrl, request({ signal: controller.signal }));
    await fleet.requested(1);
    controller.abort(REASON);
    await expect(fetching).rejects.toBe(REASON);
    await fleet.requested(2);
    expect(fleet.asked[1]).toMatchObject({ method: 'DELETE', path: '/holdfast/v1/runs' });
  });

  test('during a wait after a break: at once', async () => {
    const { fleet, fetch } = await start({ backoffMs: 60_000, backoffMaxMs: 60_000 });
    const { step, left } = watched(cut(BEGUN));
    fleet.script(step);
    const controller = new AbortController();
    const reading = (await fetch(fleet.chatUrl, request({ signal: controller.signal }))).text();
    await left;
    controller.abort(REASON);
    await expect(reading).rejects.toBe(REASON);
    await fleet.requested(2);
    expect(fleet.asked[1]).toMatchObject({ method: 'DELETE' });
  });

  test('while it is resumed: at once', async () => {
    const { fleet, fetch } = await start();
    fleet.script(cut(BEGUN), stall());
    const controller = new AbortController();
    const reading = (await fetch(fleet.chatUrl, request({ signal: controller.signal }))).text();
    await fleet.requested(2);
    controller.abort(REASON);
    await expect(reading).rejects.toBe(REASON);
    await fleet.requested(3);
    expect(fleet.asked[2]).toMatchObject({ method: 'DELETE', replica: 1 });
  });

  test('is not held against the replica', async () => {
    const { fleet, fetch } = await start({ cancelOnAbort: false });
    for (const step of [stall(), stall(BEGUN)]) {
      fleet.script(step);
      const controller = new AbortController();
      const reading = fetch(fleet.chatUrl, request({ signal: controller.signal })).then((response) =>
        response.text(),
      );
      await fleet.requested(fleet.asked.length + 1);
      controller.abort(REASON);
      await expect(reading).rejects.toBe(REASON);
    }
    await (await fetch(fleet.chatUrl, request())).text();
    expect(fleet.asked.map(({ replica }) => replica)).toEqual([0, 0, 0]);
  });

  test('is obeyed even if the inner fetch does not', async () => {
    const headers = { 'content-type': 'text/event-stream', 'holdfast-run-id': 'run_1' };
    const silent = new ReadableStream({ pull: () => new Promise(() => {}) });
    const { fleet, fetch } = await start({ fetch: async () => new Response(silent, { headers }) });
    const controller = new AbortController();
    const response = await fetch(fleet.chatUrl, request({ signal: controller.signal }));
    const reading = response.text();
    controller.abort(REASON);
    await expect(reading).rejects.toBe(REASON);
  });

  test('does not end the run where that is not wanted', async () => {
    const { fleet, fetch } = await start({ cancelOnAbort: false });
    const { step, left } = watched(stall(BEGUN));
    fleet.script(step);
    const controller = new AbortController();
    const response = await fetch(fleet.chatUrl, request({ signal: controller.signal }));
    controller.abort(REASON);
    await expect(response.text()).rejects.toBe(REASON);
    await left;
    // An unwanted DELETE would have arrived before this request.
    await (await fetch(fleet.chatUrl, request())).text();
    expect(deletions(fleet)).toEqual([]);
  });

  test('after the end of the answer changes nothing', async () => {
    const { fleet, fetch } = await start();
    const controller = new AbortController();
    const response = await fetch(fleet.chatUrl, request({ signal: controller.signal }));
    expect(await response.text()).toBe(framesOf(EVENTS));
    controller.abort(REASON);
    await (await fetch(fleet.chatUrl, request())).text();
    expect(deletions(fleet)).toEqual([]);
  });

  test('after it was given up changes nothing', async () => {
    const { fleet, fetch } = await start();
    fleet.script(cut(BEGUN, 'eof'), refuse(401, 'unauthorised'));
    const controller = new AbortController();
    const response = await fetch(fleet.chatUrl, request({ signal: controller.signal }));
    await expect(response.text()).rejects.toMatchObject({ name: 'StreamInterruptedError' });
    controller.abort(REASON);
    await (await fetch(fleet.chatUrl, request())).text();
    expect(deletions(fleet)).toEqual([]);
  });

  test('one signal for many requests gathers no listeners', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    const { fleet, fetch } = await start();
    const { signal } = new AbortController();
    await Promise.all(
      Array.from({ length: 30 }, async () => (await fetch(fleet.chatUrl, request({ signal }))).text()),
    );
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
  });
});

describe('cancelling the body', () => {
  test('ends the connection and the run', async () => {
    const { fleet, fetch } = await start();
    const { step, left } = watched(stall(BEGUN));
    fleet.script(step);
    const response = await fetch(fleet.chatUrl, request());
    const reader = response.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    await left;
    await fleet.requested(2);
    expect(deletions(fleet)).toHaveLength(1);
  });

  test('while it waits for more ends that, too', async () => {
    const { fleet, fetch } = await start();
    const { step, left } = watched(stall(BEGUN));
    fleet.script(step);
    const reader = (await fetch(fleet.chatUrl, request())).body?.getReader();
    await reader?.read();
    const reading = reader?.read();
    await reader?.cancel();
    expect(await reading).toEqual({ done: true, value: undefined });
    await left;
    await fleet.requested(2);
    // A stream without a reader isn't resumed.
    expect(fleet.asked.map(({ method }) => method)).toEqual(['POST', 'DELETE']);
  });

  test('at a replica that is gone is no error', async () => {
    const { fleet, fetch } = await start({ backoffMs: 60_000, backoffMaxMs: 60_000 });
    fleet.script(cut(BEGUN, 'eof'));
    const reader = (await fetch(fleet.chatUrl, request())).body?.getReader();
    await reader?.read();
    fleet.close();
    // An unhandled rejection would fail the test run.
    await reader?.cancel();
  });

  test('after [DONE] ends nothing', async () => {
    const { fleet, fetch } = await start();
    const { step, left } = watched(whole);
    fleet.script(step);
    const reader = (await fetch(fleet.chatUrl, request())).body?.getReader();
    let read = '';
    while (!read.includes('[DONE]')) read += Buffer.from((await reader?.read())?.value ?? '').toString();
    await reader?.cancel();
    await left;
    await (await fetch(fleet.chatUrl, request())).text();
    expect(deletions(fleet)).toEqual([]);
    expect(fleet.connections).toBeLessThanOrEqual(2);
  });
});

describe('a caller that does not read', () => {
  const LARGE = saying(...Array.from({ length: 2_000 }, () => 'x'.repeat(16_384)));
  const SIZE = Buffer.byteLength(framesOf(LARGE));

  test('keeps the replica from sending', async () => {
    const { fleet, fetch } = await start({}, LARGE);
    let sent = 0;
    const flow = new EventTarget();
    fleet.script(async (telling) => {
      telling.open();
      for (let at = 0; at < telling.body.length; at += 65_536) {
        const piece = telling.body.subarray(at, at + 65_536);
        const isFree = telling.response.write(piece);
        sent += piece.length;
        if (isFree) continue;
        flow.dispatchEvent(new Event('full'));
        await once(telling.response, 'drain');
      }
      telling.response.end();
    });
    const full = once(flow, 'full');
    const response = await fetch(fleet.chatUrl, request());
    await full;
    // Wait until every buffer is full: the sender's, the sockets', and the receiver's.
    let before = -1;
    while (before !== sent) {
      before = sent;
      await delay(200);
    }
    expect(sent).toBeLessThan(SIZE / 2);
    expect(await response.text()).toBe(framesOf(LARGE));
  });

  test('is not taken for a silent replica', async () => {
    const { fleet, fetch } = await start({ idleMs: 500 });
    fleet.script(pieces(4096));
    const response = await fetch(fleet.chatUrl, request());
    await delay(1000);
    expect(await response.text()).toBe(framesOf(EVENTS));
    expect(fleet.asked).toHaveLength(1);
  });
});
