import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it, vi } from 'vitest';
import { WEBHOOKS } from '../../src/proxy/api/openapi-webhooks.ts';
import { HEADER, textRecord } from '../checkpoint/fixtures.ts';
import {
  answerSteps,
  askStep,
  askTasks,
  deployTasks,
  type TaskDeployment,
} from '../proxy/api/task-deployment.ts';
import { CREDENTIAL, deploy } from '../proxy/run-deployment.ts';
import type { Replica } from '../replica.ts';
import { type ReceivedWebhook, type Receiver, startReceiver, WEBHOOK_SECRET } from './receiver.ts';

const TOKEN = 'hf-0123456789abcdef';

interface Deployed extends TaskDeployment {
  readonly receiver: Receiver;
}

/** Two replicas, and an endpoint that receives all of their events, or only those in `events`. */
async function deployWebhooks(
  tree: Record<string, unknown> = {},
  events?: readonly string[],
): Promise<Deployed> {
  const receiver = await startReceiver();
  const webhook = { url: receiver.url, secret: WEBHOOK_SECRET, ...(events && { events }) };
  return { ...(await deployTasks({ webhooks: [webhook], ...tree })), receiver };
}

const ajv = new Ajv2020({ strict: false, formats: { 'date-time': true } });

/** Waits for the next event, checks it against the OpenAPI document, and acknowledges it. */
async function told({ next }: Receiver): Promise<ReceivedWebhook> {
  const received = await next();
  const { payload } = received;
  const schema = WEBHOOKS[payload.type]?.post.requestBody.content['application/json'].schema ?? false;
  expect(ajv.validate(schema, payload), ajv.errorsText()).toBe(true);
  received.answer(204);
  return received;
}

/** Makes a task with this many steps, and waits until it is stored. */
async function begin(replica: Replica, steps = 1, headers?: Record<string, string>): Promise<void> {
  await answerSteps(replica, steps, 'T23', headers);
  await vi.waitFor(async () =>
    expect((await askTasks(replica, 'GET', '/T23', undefined, headers)).status).toBe(200),
  );
}

async function set(replica: Replica, verb: string, body?: object): Promise<void> {
  expect((await askTasks(replica, 'POST', `/T23/${verb}`, body)).status).toBe(200);
}

const outcomes = async ({ metrics }: Replica) =>
  Object.fromEntries(
    (await metrics.webhooks.get()).values.map(({ labels, value }) => [labels.outcome, value]),
  );

/** Drains the replicas, so that no event is left waiting, and returns how many each of them delivered. */
async function deliveredBy(replicas: readonly Replica[]): Promise<readonly unknown[]> {
  await Promise.all(replicas.map(({ server }) => server.drain()));
  return Promise.all(replicas.map(async (replica) => (await outcomes(replica)).delivered));
}

describe('what its owner says of a task', () => {
  it('sends an event when its status changes, and not when the change is repeated', async () => {
    const { replica, other, receiver } = await deployWebhooks();
    await begin(replica);
    for (const [each, verb, reason, type] of [
      [replica, 'pause', 'lunch', 'task.paused'],
      [other, 'pause', 'still lunch'],
      [other, 'resume', undefined, 'task.resumed'],
      [replica, 'complete', 'all invited', 'task.completed'],
      [other, 'complete'],
    ] as const) {
      await set(each, verb, { reason });
      if (type === undefined) continue;
      expect((await told(receiver)).payload).toEqual({
        type,
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        data: { task: 'T23', client: null, reason: reason ?? null },
      });
    }
    expect(await deliveredBy([replica, other])).toEqual([2, 1]);
  });

  it('sends one event when it is cancelled, and its answer under way is no failed step', async () => {
    const { replica, provider, receiver } = await deployWebhooks();
    await begin(replica);
    provider.manner = 'begins';
    const answer = await askStep(replica, 2);
    await set(replica, 'cancel');
    await answer.text().catch(() => {});
    const { payload } = await told(receiver);
    expect(payload).toMatchObject({ type: 'task.cancelled', data: { task: 'T23', reason: null } });
    await replica.server.drain();
    expect(await outcomes(replica)).toEqual({ delivered: 1, refused: 0, dropped: 0 });
  });
});

describe('the terms of a task', () => {
  it('two replicas tell a deadline that has passed once each, with the same id', async () => {
    const { replica, other, receiver } = await deployWebhooks();
    const headers = { ...CREDENTIAL, 'holdfast-task-deadline-ms': '300' };
    await begin(replica, 1, headers);
    const begun_ms = Date.now();
    await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(begun_ms + 300));
    expect((await askStep(replica, 2)).status).toBe(403);
    const first = await told(receiver);
    for (const each of [replica, other]) expect((await askStep(each, 3)).status).toBe(403);
    const second = await told(receiver);
    expect(second.id).toBe(first.id);
    expect(second.payload).toEqual(first.payload);
    expect(first.payload).toMatchObject({
      type: 'task.deadline_passed',
      data: { task: 'T23', client: null, deadline_at: expect.any(Number) },
    });
    const { timestamp, data } = first.payload;
    expect(data.deadline_at).toBe(Math.floor(Date.parse(timestamp) / 1000));
    expect(await deliveredBy([replica, other])).toEqual([1, 1]);
  });

  it('a budget that is spent makes one event, and another budget makes another one', async () => {
    const { replica, receiver } = await deployWebhooks();
    await begin(replica);
    const ids: string[] = [];
    for (const budget_tokens of [1, 2]) {
      expect((await askTasks(replica, 'PUT', '/T23', { budget_tokens })).status).toBe(200);
      for (const nth of [2, 3]) expect((await askStep(replica, nth)).status).toBe(402);
      const { id, payload } = await told(receiver);
      ids.push(id);
      expect(payload).toMatchObject({ type: 'task.budget_spent', data: { task: 'T23', budget_tokens } });
    }
    expect(new Set(ids).size).toBe(2);
  });

  it('a task of the same name that is begun after a purge has events of its own', async () => {
    const { replica, receiver } = await deployWebhooks();
    const ids: string[] = [];
    for (const _ of [1, 2]) {
      await begin(replica);
      expect((await askTasks(replica, 'PUT', '/T23', { budget_tokens: 1 })).status).toBe(200);
      expect((await askStep(replica, 2)).status).toBe(402);
      ids.push((await told(receiver)).id);
      expect((await askTasks(replica, 'DELETE', '/T23')).status).toBe(200);
    }
    expect(new Set(ids).size).toBe(2);
  });
});

describe('a step that has no whole answer', () => {
  it('makes an event with its cause and the number of attempts', async () => {
    const { replica, provider, receiver } = await deployWebhooks();
    provider.manner = 'refuses';
    const headers = { ...CREDENTIAL, 'holdfast-task-step': 'greet' };
    const answer = await askStep(replica, 1, 'T23', headers);
    expect(answer.status).toBe(400);
    const { payload } = await told(receiver);
    expect(payload).toMatchObject({
      type: 'task.step_failed',
      data: {
        task: 'T23',
        client: null,
        step: 1,
        step_name: 'greet',
        run: answer.headers.get('holdfast-run-id'),
        attempts: 1,
        exhausted: false,
        error: { cause: 'invalid_request', status: 400 },
      },
    });
  });

  it('says that recovery has exhausted its attempts, and what it knows of its client', async () => {
    const tree = { recovery: { max_attempts: 1 }, clients: [{ name: 'planner', token: TOKEN }] };
    const { replica, provider, receiver } = await deployWebhooks(tree);
    provider.manner = 'breaks';
    const answer = await askStep(replica, 1, 'T23', { authorization: `Bearer ${TOKEN}` });
    expect(await answer.text()).toContain('stream_interrupted');
    const { payload } = await told(receiver);
    expect(payload.data).toEqual({
      task: 'T23',
      client: 'planner',
      step: 1,
      step_name: null,
      run: answer.headers.get('holdfast-run-id'),
      attempts: 1,
      exhausted: true,
      error: { cause: 'connection_reset', status: null },
    });
    expect(JSON.stringify(payload)).not.toContain('kel');
  });

  it('makes no event where it was recovered, nor where its client has left', async () => {
    const { replica, provider, receiver } = await deployWebhooks({ recovery: { backoff_ms: 1 } });
    provider.manner = 'breaks';
    expect(await (await askStep(replica, 1)).text()).toContain('[DONE]');
    provider.manner = 'begins';
    const left = await askStep(replica, 2);
    await left.body?.cancel();
    await vi.waitFor(async () =>
      expect(await replica.metrics.registry.metrics()).toMatch(/outcome="cancelled"} 1/),
    );
    await set(replica, 'complete');
    expect((await told(receiver)).payload.type).toBe('task.completed');
    await vi.waitFor(async () => expect((await outcomes(replica)).delivered).toBe(1));
  });

  it('makes an event at the replica that salvages it, where its own was lost and no client came back', async () => {
    const receiver = await startReceiver();
    const deployment = await deploy(
      {},
      {
        webhooks: [{ url: receiver.url, secret: WEBHOOK_SECRET }],
        resume: { salvage_after_ms: 1000, detached_ms: 1000 },
      },
    );
    const step = { task: 'T23', number: 4, name: 'greet' };
    const records = [{ seq: 0, header: { ...HEADER, step }, events: [] }, textRecord(0, 'kel')];
    const { run } = await deployment.begin(records);
    await deployment.other.close();
    const { payload } = await told(receiver);
    expect(payload).toMatchObject({
      type: 'task.step_failed',
      data: {
        task: 'T23',
        step: 4,
        step_name: 'greet',
        run,
        attempts: null,
        exhausted: false,
        error: { cause: 'replica_lost', status: null },
      },
    });
  });
});

it('an unknown call makes one event, however often it is claimed', async () => {
  const { replica, other, receiver } = await deployWebhooks();
  await begin(replica);
  const claim = async (each: Replica, name: string, hold_ms: number) => {
    const answer = await askTasks(each, 'POST', '/T23/calls/send_mail/claim', { claim: name, hold_ms });
    return ((await answer.json()) as { outcome: string }).outcome;
  };
  expect(await claim(replica, 'lost', 1)).toBe('run');
  await vi.waitFor(async () => expect(await claim(replica, 'next', 60_000)).toBe('unknown'));
  const first = await told(receiver);
  expect(first.payload).toMatchObject({
    type: 'task.call_unknown',
    data: {
      task: 'T23',
      client: null,
      call: { key: 'send_mail', claim: 'lost', claimed_at: expect.any(Number) },
    },
  });
  for (const each of [replica, other]) expect(await claim(each, 'next', 60_000)).toBe('unknown');
  expect((await told(receiver)).id).toBe(first.id);
  expect(await deliveredBy([replica, other])).toEqual([1, 1]);
});

describe('what a receiver does', () => {
  it('delays no request: a task is paused while it hangs, and begins again', async () => {
    const { replica, receiver } = await deployWebhooks();
    await begin(replica);
    await set(replica, 'pause');
    const hanging = await receiver.next();
    await set(replica, 'resume');
    await answerSteps(replica, 2);
    hanging.answer(200);
    expect((await told(receiver)).payload.type).toBe('task.resumed');
  });

  it('fails no request: that it refuses is counted', async () => {
    const { replica, receiver } = await deployWebhooks();
    await begin(replica);
    await set(replica, 'pause');
    (await receiver.next()).answer(400);
    await vi.waitFor(async () =>
      expect(await outcomes(replica)).toEqual({ delivered: 0, refused: 1, dropped: 0 }),
    );
    await set(replica, 'resume');
    await told(receiver);
  });

  it('is waited for by a replica that drains', async () => {
    const { replica, receiver } = await deployWebhooks();
    await begin(replica);
    await set(replica, 'pause');
    (await receiver.next()).answer(503);
    const drained = replica.server.drain();
    expect((await told(receiver)).payload.type).toBe('task.paused');
    await drained;
    expect(await outcomes(replica)).toEqual({ delivered: 1, refused: 0, dropped: 0 });
  });
});

it('a replica that drains waits for no receiver longer than for its runs', async () => {
  const { replica, receiver } = await deployWebhooks({ limits: { drain_ms: 50 } });
  await begin(replica);
  await set(replica, 'pause');
  const hanging = await receiver.next();
  const closed = new Promise((resolve) => hanging.response.once('close', resolve));
  await replica.server.drain();
  await replica.server.close();
  await closed;
  expect(await outcomes(replica)).toEqual({ delivered: 0, refused: 0, dropped: 1 });
});

it('an endpoint gets only the events that it names', async () => {
  const { replica, receiver } = await deployWebhooks({}, ['task.completed']);
  await begin(replica);
  for (const verb of ['pause', 'resume', 'complete']) await set(replica, verb);
  expect((await told(receiver)).payload.type).toBe('task.completed');
});

it('without an endpoint nothing is counted', async () => {
  const { replica } = await deployTasks();
  await begin(replica);
  for (const verb of ['pause', 'resume', 'complete']) await set(replica, verb);
  expect(await outcomes(replica)).toEqual({ delivered: 0, refused: 0, dropped: 0 });
});
