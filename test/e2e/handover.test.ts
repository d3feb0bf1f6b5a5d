import { expect, onTestFinished, test } from 'vitest';
import { Deployment } from './deployment.ts';
import { post } from './raw-client.ts';
import { payloadsOf, type StreamClient } from './stream-client.ts';
import {
  ALL_OF_TALK,
  beginTalk,
  fetchRun,
  RESUMABLE,
  repeatTalk,
  resumeTalk,
  saidBy,
  TALK,
  talkRequest,
} from './talk.ts';

/** Too long for a test to wait until the lease lapses. */
const LEASE_MS = 60_000;
const DRAIN_MS = 300;

async function start(limits: object): Promise<Deployment> {
  const deployment = await Deployment.start({ replicas: 2, checkpoint: { lease_ms: LEASE_MS }, limits });
  onTestFinished(() => deployment.close());
  return deployment;
}

const stateOf = async (deployment: Deployment, { run }: StreamClient) =>
  (await fetchRun(deployment.other, run)).json();

test('a replica that is stopped hands over what it cannot finish, and others continue at once', async () => {
  const deployment = await start({ drain_ms: DRAIN_MS });
  const { holdfast } = deployment;
  const resuming = await beginTalk(deployment, 'resumed', RESUMABLE);
  const repeating = await beginTalk(deployment, 'repeated');

  const stopped = holdfast.stop();
  await holdfast.logged(({ msg }) => msg === 'draining');
  const before = resuming.payloads.length;
  expect((await fetch(`${holdfast.adminUrl}/readyz`)).status).toBe(503);
  const refused = await fetch(`${holdfast.url}/models`);
  expect(refused.status).toBe(503);
  expect(Object.fromEntries(refused.headers)).toMatchObject({
    'retry-after': '1',
    'retry-after-ms': '1000',
    connection: 'close',
  });
  await Promise.all([resuming.ended(), repeating.ended()]);
  expect(await stopped).toEqual({ code: 0, signal: null });

  // They continued until the drain was over.
  expect(resuming.payloads.length).toBeGreaterThan(before);
  for (const client of [resuming, repeating]) {
    expect(saidBy(client.payloads)).toMatchObject({ finish: [], done: false });
    expect(await stateOf(deployment, client)).toMatchObject({
      status: 'running',
      holder: 'released',
      // The store has everything that clients were shown.
      cursor: client.payloads.length,
    });
  }

  const response = await resumeTalk(deployment.other, resuming, 0);
  expect(saidBy([...resuming.payloads, ...payloadsOf(await response.text())])).toEqual(ALL_OF_TALK);
  const repeated = await repeatTalk(deployment.other, 'repeated');
  expect(repeated.run).toBe(repeating.run);
  expect(saidBy(repeated.payloads)).toEqual(ALL_OF_TALK);
  for (const question of ['resumed', 'repeated']) expect(deployment.requests(question)).toHaveLength(2);
});

test('a replica that is stopped lets its runs end while there is time', async () => {
  const deployment = await start({ drain_ms: 20_000 });
  const client = await beginTalk(deployment, 'finished');
  const stopped = deployment.holdfast.stop();
  await client.ended();
  expect(await stopped).toEqual({ code: 0, signal: null });
  expect(saidBy(client.payloads)).toMatchObject({ ...ALL_OF_TALK, done: expect.anything() });
  expect(await stateOf(deployment, client)).toMatchObject({ status: 'complete' });
  expect(deployment.requests('finished')).toHaveLength(1);
});

test('a request that is not answered yet is sent away, for another replica to answer', async () => {
  const deployment = await start({ drain_ms: DRAIN_MS });
  deployment.plan('early', { ...TALK, faults: [{ kind: 'silence', at: { before_headers: true } }] });
  const answer = post(deployment.holdfast.url, talkRequest('early'));
  await deployment.asked('early');
  const stopped = deployment.holdfast.stop();
  const { status, headers } = await answer;
  expect(status).toBe(503);
  expect(headers.get('retry-after-ms')).toBe('1000');
  expect(await stopped).toEqual({ code: 0, signal: null });
  const repeated = await repeatTalk(deployment.other, 'early');
  expect(saidBy(repeated.payloads)).toEqual(ALL_OF_TALK);
});
