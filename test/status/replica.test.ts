import { afterAll, beforeAll, expect, test } from 'vitest';
import type {
  FeedUpdate,
  RunDetail,
  RunsDocument,
  StatusDocument,
  TasksDocument,
} from '../../src/status/snapshot.ts';
import { Deployment } from '../e2e/deployment.ts';
import type { HoldfastProcess } from '../e2e/holdfast-process.ts';
import { payloadsOf } from '../e2e/stream-client.ts';
import { ALL_OF_TALK, beginTalk, RESUMABLE, resumeTalk, saidBy } from '../e2e/talk.ts';
import { openFeed } from './feed-reader.ts';

const PROVIDER_KEY = 'sk-of-the-provider';
const CLIENT_KEY = 'client-key';
const THREAD = 'a thread that says who is talking';
const TASK = 'a task that says what it is for';
const PARENT = 'a task that says what it is a part of';
const KEY = 'a key that says what is bought';
const QUESTION = 'something that nobody else may know';
/** Fragments of the answer: text, a tool call's id, and an argument. */
const SAID = ['w1 ', 'w100', 'call_brest', 'Lorient'];
const LEASE_MS = 1000;

let deployment: Deployment;
beforeAll(async () => {
  deployment = await Deployment.start({
    replicas: 2,
    checkpoint: { lease_ms: LEASE_MS },
    apiKey: PROVIDER_KEY,
  });
});
afterAll(() => deployment.close());

const get = async <Document>({ adminUrl }: HoldfastProcess, path: string): Promise<Document> =>
  (await (await fetch(adminUrl + path)).json()) as Document;

test('a run that outlives its replica is on the board of both, and neither has content or keys', async () => {
  const { holdfast, other } = deployment;
  const feed = await openFeed(other.adminUrl);
  await feed.next('snapshot');
  const private_ = {
    'holdfast-thread': THREAD,
    'idempotency-key': KEY,
    'holdfast-task': TASK,
    'holdfast-parent-task': PARENT,
  };
  const client = await beginTalk(deployment, QUESTION, { ...RESUMABLE, ...private_ });
  const { run } = client;
  const [live] = (await get<RunsDocument>(holdfast, '/runs')).live;
  expect(live).toMatchObject({ run, state: 'answering', attempt: 1, resumable: true, taken_over: false });
  expect(live?.characters).toBeGreaterThan(0);
  const before = await get<RunDetail>(holdfast, `/runs/${run}`);
  expect(before.timeline.map(({ kind }) => kind)).toEqual(['attempt', 'answering']);
  const told = [JSON.stringify(before)];

  await holdfast.kill('SIGKILL');
  await client.ended();
  const resumed = await resumeTalk(other, client, client.payloads.length);
  expect(saidBy([...client.payloads, ...payloadsOf(await resumed.text())])).toEqual(ALL_OF_TALK);
  await feed.until<FeedUpdate>('update', ({ changed }) => changed?.some(({ outcome }) => outcome) === true);
  const after = await get<RunDetail>(other, `/runs/${run}`);
  expect(after).toMatchObject({ run, taken_over: true, outcome: 'recovered', interruptions: 1, attempt: 2 });
  expect(after.timeline.map(({ kind }) => kind)).toEqual([
    'taken_over',
    'interrupted',
    'planned',
    'attempt',
    'answering',
    'recovered',
    'whole',
    'ended',
  ]);
  expect(after.timeline[1]).toMatchObject({ evidence: 'replica_lost', attempt: 0 });
  expect(await get<StatusDocument>(other, '/status')).toMatchObject({
    runs: { live: 0, ended: { recovered: 1 } },
    interruptions: [{ cause: 'connection_reset', count: 1 }],
    recovery_gaps: { count: 1 },
    store: { name: 'file', state: 'ok' },
  });

  const [task] = (await get<TasksDocument>(other, '/tasks')).tasks;
  expect(task).toMatchObject({ state: 'idle', steps: 1, recoveries: 1 });
  expect(task?.parent).toMatch(/^task_/);
  for (const path of ['/', '/status', '/runs', `/runs/${run}`, '/tasks', `/tasks/${task?.task}`])
    told.push(await (await fetch(other.adminUrl + path)).text());
  told.push(feed.text);
  for (const text of told) {
    for (const secret of [PROVIDER_KEY, CLIENT_KEY, THREAD, TASK, PARENT, KEY, QUESTION, ...SAID])
      expect(text).not.toContain(secret);
  }
});
