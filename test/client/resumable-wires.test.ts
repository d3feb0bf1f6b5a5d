import { describe, expect, test } from 'vitest';
import { resumable } from '../../src/client/index.ts';
import { DONE, framesOf, request, saying } from './answers.ts';
import { cut, Fleet, failing, refuse, reset, stall } from './fleet.ts';
import { COMPLETION, MESSAGE, RESPONSE, type WireAnswer } from './wire-answers.ts';

const CHAT: WireAnswer = {
  path: '/v1/chat/completions',
  events: saying('à marée ', '満潮 '),
  otherEnds: [JSON.stringify({ error: { message: 'm' } })],
};
/** The headers of Anthropic's SDK. */
const HEADERS = { 'content-type': 'application/json', 'x-api-key': 'client-key', 'anthropic-version': '1' };

async function start(events: readonly string[]) {
  const fleet = await Fleet.start(events);
  return { fleet, fetch: resumable({ endpoints: fleet.urls, backoffMs: 1, backoffMaxMs: 4 }) };
}

describe.each([CHAT, COMPLETION, MESSAGE, RESPONSE])('$path', ({ path, events, otherEnds }) => {
  test('is resumed, and its events keep their names', async () => {
    const { fleet, fetch } = await start(events);
    const whole = framesOf(events);
    fleet.script(cut(150, 'eof'));
    expect(await (await fetch(fleet.urls[0] + path, request({ headers: HEADERS }))).text()).toBe(whole);
    expect(fleet.asked.map(({ path: asked }) => asked)).toEqual([path, expect.stringMatching(/\/resume$/)]);
    for (const { headers } of fleet.asked) {
      expect(headers).toMatchObject({ ...HEADERS, 'holdfast-resume': '1' });
      expect(headers.authorization).toBeUndefined();
    }
  });

  test('goes elsewhere with its path and query', async () => {
    const { fleet, fetch } = await start(events);
    fleet.script(reset, refuse(503, 'run_taken_over'));
    const url = `${fleet.urls[0] + path}?beta=true`;
    expect(await (await fetch(url, request())).text()).toBe(framesOf(events));
    expect(fleet.asked.map(({ replica, path: asked }) => `${replica} ${asked}`)).toEqual(
      [0, 1, 0].map((replica) => `${replica} ${path}?beta=true`),
    );
  });

  test.each([
    ['before the stream', refuse(409, 'not_resumable')],
    ['in the stream', failing('not_resumable')],
  ])('is asked for with its request where a replica says %s that it does not know that', async (_, step) => {
    const { fleet, fetch } = await start(events);
    const init = request({ headers: HEADERS });
    fleet.script(cut(150, 'eof'), step);
    const url = `${fleet.urls[0] + path}?beta=true`;
    expect(await (await fetch(url, init)).text()).toBe(framesOf(events));
    const [, without, again] = fleet.asked.map(({ body }) => body as { cursor?: number });
    expect(without).not.toHaveProperty('request');
    expect(again).toEqual({ ...without, request: { path, body: init.body } });
  });

  test('is not whole without its end', async () => {
    const { fleet, fetch } = await start(events.slice(0, -1));
    fleet.script(cut(1e9, 'eof'), refuse(401, 'unauthorised'));
    const reading = (await fetch(fleet.urls[0] + path, request())).text();
    await expect(reading).rejects.toMatchObject({ name: 'StreamInterruptedError' });
  });

  test.each([events.at(-1), ...otherEnds])('has ended after %s', async (end = DONE) => {
    const told = [...events.slice(0, -1), end];
    const { fleet, fetch } = await start(told);
    fleet.script(cut(1e9, 'eof'));
    const response = await fetch(fleet.urls[0] + path, request());
    expect(await response.text()).toBe(framesOf(told));
    expect(fleet.asked).toHaveLength(1);
  });

  test('is cancelled with the credential that it was asked for with', async () => {
    const { fleet, fetch } = await start(events);
    fleet.script(stall(100));
    const { signal, abort } = abortable();
    const response = await fetch(fleet.urls[0] + path, request({ headers: HEADERS, signal }));
    abort();
    await expect(response.text()).rejects.toMatchObject({ name: 'AbortError' });
    await fleet.requested(2);
    expect(fleet.asked[1]).toMatchObject({ method: 'DELETE', headers: { 'x-api-key': 'client-key' } });
  });
});

function abortable() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}
