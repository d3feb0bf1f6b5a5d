import { afterAll, beforeAll, expect, test } from 'vitest';
import { Deployment } from './deployment.ts';
import { payloadsOf } from './stream-client.ts';
import { ALL_OF_TALK, beginTalk, fetchRun, RESUMABLE, saidBy } from './talk.ts';

const DETACHED_MS = 1000;
const AT_ONCE_MS = 1000;

let deployment: Deployment;
beforeAll(async () => {
  deployment = await Deployment.start({
    replicas: 2,
    checkpoint: { lease_ms: 60_000 },
    resume: { detached_ms: DETACHED_MS },
  });
});
afterAll(() => deployment.close());

const endOf = (run: string) =>
  deployment.holdfast.logged((line) => line.msg === 'run ended' && line.run === run);

test('a run whose client leaves is over at once', async () => {
  const client = await beginTalk(deployment, 'plain');
  const left_ms = Date.now();
  client.leave();
  expect((await deployment.abandoned('plain')) - left_ms).toBeLessThan(AT_ONCE_MS);
  expect(await endOf(client.run)).toMatchObject({ outcome: 'cancelled' });
});

test('a resumable one continues for a while', async () => {
  const client = await beginTalk(deployment, 'resumable', RESUMABLE);
  const left_ms = Date.now();
  client.leave();
  expect((await deployment.abandoned('resumable')) - left_ms).toBeGreaterThan(DETACHED_MS * 0.9);
  expect(await endOf(client.run)).toMatchObject({ outcome: 'cancelled' });
  const state = await fetchRun(deployment.other, client.run);
  expect(await state.json()).toMatchObject({ status: 'cancelled', partial: true });
});

test('and to its end while a client reads it, at any replica', async () => {
  const client = await beginTalk(deployment, 'read elsewhere', RESUMABLE);
  client.leave();
  const { payloads, run } = client;
  const response = await fetchRun(deployment.other, `${run}/stream?starting_after=${payloads.length}`);
  const rest = payloadsOf(await response.text());
  expect(saidBy([...payloads, ...rest])).toEqual(ALL_OF_TALK);
  expect(await endOf(run)).toMatchObject({ outcome: 'complete' });
  expect(deployment.requests('read elsewhere')).toHaveLength(1);
});

test('a run can be cancelled from another replica, which its own one notices', async () => {
  const client = await beginTalk(deployment, 'cancelled elsewhere', RESUMABLE);
  const response = await fetchRun(deployment.other, client.run, { method: 'DELETE' });
  const cancelled_ms = Date.now();
  expect(await response.json()).toMatchObject({ status: 'cancelled' });
  expect((await deployment.abandoned('cancelled elsewhere')) - cancelled_ms).toBeLessThan(AT_ONCE_MS);
  await client.ended();
  expect(saidBy(client.payloads)).toMatchObject({ finish: [], done: false });
  expect(await endOf(client.run)).toMatchObject({ outcome: 'superseded' });
});

test('a run can be cancelled where it is delivered, and its client is told', async () => {
  const client = await beginTalk(deployment, 'cancelled here');
  const response = await fetchRun(deployment.holdfast, client.run, { method: 'DELETE' });
  expect(await response.json()).toMatchObject({ status: 'cancelled', epoch: 1 });
  await deployment.abandoned('cancelled here');
  await client.ended();
  expect(JSON.parse(client.payloads.at(-1) ?? '')).toMatchObject({ error: { code: 'run_cancelled' } });
  expect(await endOf(client.run)).toMatchObject({ outcome: 'cancelled' });
});
