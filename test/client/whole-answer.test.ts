import { describe, expect, test } from 'vitest';
import { resumable } from '../../src/client/index.ts';
import { request, saying } from './answers.ts';
import { Fleet, refuse, reset, type Step, stall } from './fleet.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const ANSWER = '{"choices":[]}';
const WHOLE: Step = ({ response }) => void response.writeHead(200, JSON_TYPE).end(ANSWER);
const body = JSON.stringify({ model: 'm', messages: [] });

async function start(...steps: readonly Step[]) {
  const fleet = await Fleet.start(saying());
  fleet.script(...steps);
  return { fleet, fetch: resumable({ endpoints: fleet.urls }) };
}

const replicas = ({ asked }: Fleet) => asked.map(({ replica }) => replica);

describe('a request that asks for no stream', () => {
  test.each<[string, Step]>([
    ['resets the connection', reset],
    ['is shutting down', refuse(503, 'shutting_down', { 'retry-after': '30' })],
    ['has lost the run', refuse(503, 'run_taken_over')],
    ['is behind a balancer that says 502', ({ response }) => void response.writeHead(502).end('<html>')],
  ])('is sent to the next replica when the first one %s, with the same key', async (_, step) => {
    const { fleet, fetch } = await start(step, WHOLE, WHOLE);
    const url = `${fleet.base}/messages?beta=true`;
    expect(await (await fetch(url, request({ body }))).text()).toBe(ANSWER);
    expect(replicas(fleet)).toEqual([0, 1]);
    const [first, second] = fleet.asked;
    expect(second).toMatchObject({ path: '/v1/messages?beta=true', body: first?.body });
    expect(second?.headers['idempotency-key']).toBe(first?.headers['idempotency-key']);
    expect(second?.headers.authorization).toBe('Bearer client-key');
    expect(second?.headers['holdfast-resume']).toBeUndefined();
    // The next request starts with the replica that worked.
    await fetch(url, request({ body }));
    expect(replicas(fleet)).toEqual([0, 1, 1]);
  });

  test.each([400, 401, 429, 500, 503])('gets the answer of a provider as it is: %i', async (status) => {
    const { fleet, fetch } = await start(refuse(status, 'upstream_unavailable'));
    const response = await fetch(fleet.chatUrl, request({ body }));
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { code: 'upstream_unavailable' } });
    expect(fleet.asked).toHaveLength(1);
  });

  test('asks each replica once', async () => {
    const { fleet, fetch } = await start(reset, refuse(503, 'shutting_down'));
    const response = await fetch(fleet.chatUrl, request({ body }));
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ error: { code: 'shutting_down' } });
    expect(replicas(fleet)).toEqual([0, 1]);
    fleet.script(refuse(503, 'shutting_down'), reset);
    await expect(fetch(fleet.chatUrl, request({ body }))).rejects.toThrow(TypeError);
  });

  test('that is aborted is sent nowhere else', async () => {
    const { fleet, fetch } = await start(stall());
    const controller = new AbortController();
    const fetching = fetch(fleet.chatUrl, request({ body, signal: controller.signal }));
    await fleet.requested(1);
    controller.abort();
    await expect(fetching).rejects.toMatchObject({ name: 'AbortError' });
    // An unwanted request would have arrived before this one.
    fleet.script(WHOLE);
    await fetch(fleet.chatUrl, request({ body }));
    expect(replicas(fleet)).toEqual([0, 0]);
  });

  test('goes as it came where there is no other replica', async () => {
    const { fleet } = await start(refuse(503, 'shutting_down'));
    expect((await resumable()(fleet.chatUrl, request({ body }))).status).toBe(503);
    expect(fleet.asked).toHaveLength(1);
    expect(fleet.asked[0]?.headers['idempotency-key']).toBeUndefined();
  });
});
