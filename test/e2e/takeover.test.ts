import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { completionRequest, textOf as contentOfMessage } from '../provider/request.ts';
import { Deployment, type DeploymentOptions } from './deployment.ts';
import { textOf } from './situations.ts';
import { payloadsOf, type StreamClient } from './stream-client.ts';
import { ALL_OF_TALK, beginTalk, fetchRun, RESUMABLE, repeatTalk, resumeTalk, saidBy, TALK } from './talk.ts';

/** Short enough for a test, long enough for a busy machine to renew it. */
const LEASE_MS = 1000;
const KEY = { 'idempotency-key': 'a key of the client' };

const start = (checkpoint: DeploymentOptions['checkpoint'] = {}): Promise<Deployment> =>
  Deployment.start({ replicas: 2, checkpoint: { lease_ms: LEASE_MS, ...checkpoint } });

async function kill(deployment: Deployment, clients: readonly StreamClient[]): Promise<void> {
  await deployment.holdfast.kill('SIGKILL');
  await Promise.all(clients.map((client) => client.ended()));
}

/** Checks that the model was given what it had said, and was asked only for the rest. */
function expectOnlyTheRest(deployment: Deployment, question: string): void {
  const [first, second, ...others] = deployment.requests(question);
  expect(others).toEqual([]);
  const prefix = completionRequest(second?.body)?.messages.at(-1);
  expect(prefix?.role).toBe('assistant');
  const kept = contentOfMessage(prefix);
  expect(kept.length).toBeGreaterThan(20);
  expect(textOf(TALK).startsWith(kept)).toBe(true);
  expect(first?.aborted_at_ms).toBeDefined();
  expect(second?.sent.bytes).toBeGreaterThan(0);
}

describe('a replica that is killed', () => {
  let deployment: Deployment;
  let resuming: StreamClient;
  let returning: StreamClient;
  let repeating: StreamClient;
  let reading: StreamClient;
  let clients: readonly StreamClient[];

  beforeAll(async () => {
    deployment = await start();
    [resuming, returning, repeating, reading] = await Promise.all([
      beginTalk(deployment, 'resumed', RESUMABLE),
      beginTalk(deployment, 'returned to'),
      beginTalk(deployment, 'repeated with a key', KEY),
      beginTalk(deployment, 'read'),
    ]);
    clients = [resuming, returning, repeating, reading];
    await kill(deployment, clients);
  });
  afterAll(() => deployment.close());

  test('leaves nothing that its clients could take for an end', () => {
    for (const { payloads } of clients) {
      expect(saidBy(payloads)).toMatchObject({ finish: [], done: false });
      expect(saidBy(payloads).text).not.toBe('');
    }
  });

  test('is replaced for a client that brings what it has', async () => {
    const { payloads, run } = resuming;
    const response = await resumeTalk(deployment.other, resuming, payloads.length);
    expect(response.status).toBe(200);
    const body = await response.text();
    const rest = payloadsOf(body);
    expect(saidBy([...payloads, ...rest])).toEqual(ALL_OF_TALK);
    expectOnlyTheRest(deployment, 'resumed');
    const ids = body.match(/(?<=^id: ).*$/gm);
    expect(ids?.[0]).toBe(`${run}.2.${payloads.length + 1}`);
    expect(ids).toHaveLength(rest.length);
  });

  test('is replaced for a client that repeats its request with the id of the run', async () => {
    const answer = await repeatTalk(deployment.other, 'returned to', { 'holdfast-run-id': returning.run });
    expect(answer.run).toBe(returning.run);
    expect(saidBy(answer.payloads)).toEqual(ALL_OF_TALK);
    expectOnlyTheRest(deployment, 'returned to');
  });

  test('is replaced for a client that repeats its key, which then needs no provider any more', async () => {
    for (let time = 0; time < 2; time++) {
      const answer = await repeatTalk(deployment.other, 'repeated with a key', KEY);
      expect(answer.run).toBe(repeating.run);
      expect(saidBy(answer.payloads)).toEqual(ALL_OF_TALK);
    }
    expectOnlyTheRest(deployment, 'repeated with a key');
  });

  test('cannot be replaced for a client that only knows the run, until the request comes again', async () => {
    const failed = payloadsOf(await (await fetchRun(deployment.other, `${reading.run}/stream`)).text());
    expect(JSON.parse(failed.at(-1) ?? '')).toMatchObject({ error: { code: 'not_resumable' } });
    expect(deployment.requests('read')).toHaveLength(1);
    const answer = await repeatTalk(deployment.other, 'read');
    expect(answer.run).toBe(reading.run);
    expect(saidBy(answer.payloads)).toEqual(ALL_OF_TALK);
    expectOnlyTheRest(deployment, 'read');
  });

  test('tells what became of a run', async () => {
    expect(await (await fetchRun(deployment.other, resuming.run)).json()).toMatchObject({
      id: resuming.run,
      status: 'complete',
      text: ALL_OF_TALK.text,
      tool_calls: ALL_OF_TALK.calls,
      epoch: 2,
      takeovers: 1,
      partial: false,
    });
  });
});

test('a checkpoint that is written ahead is never behind: counting events is enough to come back', async () => {
  const deployment = await start({ durability: 'write_ahead' });
  onTestFinished(() => deployment.close());
  const client = await beginTalk(deployment, 'counted', RESUMABLE);
  await kill(deployment, [client]);
  const { run, payloads } = client;
  const response = await fetchRun(deployment.other, `${run}/stream?starting_after=${payloads.length}`);
  expect(response.status).toBe(200);
  expect(saidBy([...payloads, ...payloadsOf(await response.text())])).toEqual(ALL_OF_TALK);
  expectOnlyTheRest(deployment, 'counted');
});

test('a checkpoint that is behind is healed by what the client has, and never spliced', async () => {
  // A long interval, so that most of what the client has isn't stored.
  const deployment = await start({ interval_ms: 60_000 });
  onTestFinished(() => deployment.close());
  const client = await beginTalk(deployment, 'behind', RESUMABLE);
  await kill(deployment, [client]);
  const { run, payloads } = client;
  const refused = await fetchRun(deployment.other, `${run}/stream?starting_after=${payloads.length}`);
  expect(refused.status).toBe(409);
  expect(await refused.json()).toMatchObject({ error: { code: 'cursor_ahead' } });
  expect((await resumeTalk(deployment.other, client, 2)).status).toBe(409);
  expect(deployment.requests('behind')).toHaveLength(1);

  const response = await resumeTalk(deployment.other, client, payloads.length);
  expect(response.status).toBe(200);
  expect(saidBy([...payloads, ...payloadsOf(await response.text())])).toEqual(ALL_OF_TALK);
  expectOnlyTheRest(deployment, 'behind');

  // The store doesn't know which attempt produced the events that the client brought.
  const { segments, text } = await vi.waitFor(async () => {
    const told = (await (await fetchRun(deployment.other, run)).json()) as StoredAnswer;
    expect(told.status).toBe('complete');
    return told;
  }, 15_000);
  expect(segments).toMatchObject([
    { attempt: 1, epoch: 1, upstream: 'vllm', mode: 'first' },
    { attempt: null, epoch: 2, upstream: null, mode: 'brought', to: payloads.length },
    { attempt: 2, epoch: 2, upstream: 'vllm', mode: 'prefill', plan: 'R1', from: payloads.length + 1 },
  ]);
  expect(segments.reduce((sum, { characters }) => sum + characters.text, 0)).toBe(text.length);
});

interface StoredAnswer {
  readonly status: string;
  readonly text: string;
  readonly segments: readonly { readonly characters: { readonly text: number } }[];
}
