import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Plan } from '../provider/script.ts';
import { Deployment, type DeploymentOptions, modelOf } from './deployment.ts';
import type { HoldfastProcess } from './holdfast-process.ts';
import { streamRequest } from './raw-client.ts';
import { payloadsOf, StreamClient } from './stream-client.ts';
import { ALL_OF_TALK, beginTalk, fetchRun, RESUMABLE, repeatTalk, saidBy, TALK } from './talk.ts';

const LEASE_MS = 1000;
const DETACHED_MS = 12_000;
/** By then the store has the answer so far, and the client's departure. */
const NOTED_MS = 400;
const EVENTS_BEFORE_DEATH = 25;
const SLOW_TALK: Plan = { ...TALK, delay_ms: 12 };

const start = (options: DeploymentOptions = {}) =>
  Deployment.start({
    apiKey: 'operator-key',
    ...options,
    checkpoint: { lease_ms: LEASE_MS, interval_ms: 50 },
    resume: { detached_ms: DETACHED_MS, ...options.resume },
  });

/** The replica that finishes the run, and the log line with which it does. */
const endOf = (replicas: readonly HoldfastProcess[], run: string) =>
  Promise.race(
    replicas.map(async (replica) => {
      const isEnd = ({ msg, run: of }: { msg: string; run?: unknown }) =>
        of === run && (msg === 'run ended' || msg === 'run salvaged');
      return { replica, line: await replica.logged(isEnd) };
    }),
  );

const statusOf = async (replica: HoldfastProcess, run: string) =>
  (await (await fetchRun(replica, run)).json()) as { status: string; end: { cause: string | null } };

describe('runs of a replica that is killed after their clients have left', () => {
  let deployment: Deployment;
  let living: readonly HoldfastProcess[];
  let keyed: StreamClient;
  let read: StreamClient;
  let plain: StreamClient;
  let unkeyed: StreamClient;
  let connected: StreamClient;
  let killed_ms: number;

  beforeAll(async () => {
    // Runs that aren't continued unattended are finalised if no client has returned by then.
    deployment = await start({ replicas: 3, resume: { salvage_after_ms: 1500 } });
    const beginUnkeyed = async () => {
      deployment.plan('unkeyed', SLOW_TALK);
      const request = streamRequest(modelOf('h1'), 'unkeyed');
      const client = await StreamClient.open(deployment.holdfast.url, request, RESUMABLE);
      await client.read();
      await client.received(EVENTS_BEFORE_DEATH);
      return client;
    };
    [keyed, read, plain, unkeyed, connected] = await Promise.all([
      beginTalk(deployment, 'keyed', RESUMABLE, SLOW_TALK),
      beginTalk(deployment, 'read', RESUMABLE, SLOW_TALK),
      beginTalk(deployment, 'plain', {}, SLOW_TALK),
      beginUnkeyed(),
      beginTalk(deployment, 'connected', RESUMABLE, SLOW_TALK),
    ]);
    for (const client of [keyed, read, unkeyed]) client.leave();
    await setTimeout(NOTED_MS);
    living = deployment.replicas.slice(1);
    killed_ms = Date.now();
    await deployment.holdfast.kill('SIGKILL');
  }, 60_000);
  afterAll(() => deployment.close());

  test('are followed by a reader that comes while they continue', async () => {
    await deployment.asked('read', 2);
    await setTimeout(300);
    const [first] = living;
    const response = await fetchRun(first as HoldfastProcess, `${read.run}/stream`);
    expect(saidBy(payloadsOf(await response.text()))).toEqual(ALL_OF_TALK);
    expect(deployment.requests('read')).toHaveLength(2);
  });

  test('come to their end without a request, with the key of the operator', async () => {
    const { replica, line } = await endOf(living, keyed.run);
    expect(Date.now() - killed_ms).toBeLessThan(DETACHED_MS);
    expect(line).toMatchObject({ msg: 'run ended', outcome: 'recovered' });
    expect(replica.log).toContainEqual(
      expect.objectContaining({ msg: 'run continues without a client', run: keyed.run }),
    );
    const [, rest, ...more] = deployment.requests('keyed');
    expect(more).toEqual([]);
    expect(rest?.headers.authorization).toBe('Bearer operator-key');
    expect(await statusOf(replica, keyed.run)).toMatchObject({ status: 'complete' });
    for (const each of living) {
      const response = await fetchRun(each, `${keyed.run}/stream`);
      expect(saidBy(payloadsOf(await response.text()))).toEqual(ALL_OF_TALK);
    }
    const again = await repeatTalk(replica, 'keyed');
    expect(again.run).toBe(keyed.run);
    expect(saidBy(again.payloads)).toEqual(ALL_OF_TALK);
    expect(deployment.requests('keyed')).toHaveLength(2);
  });

  test('are partials where the key was the client’s, the client asked for no more, or had not left', async () => {
    for (const [question, { run }] of [
      ['unkeyed', unkeyed],
      ['plain', plain],
      ['connected', connected],
    ] as const) {
      const { replica, line } = await endOf(living, run);
      expect(line).toMatchObject({ msg: 'run salvaged', status: 'recovered_from_partial' });
      expect(await statusOf(replica, run)).toMatchObject({ status: 'recovered_from_partial' });
      expect(deployment.requests(question)).toHaveLength(1);
    }
  });

  test('are counted as runs', async () => {
    const counts = await Promise.all(living.map((each) => each.metrics()));
    const sum = (name: string) => counts.reduce((total, each) => total + (each.get(name) ?? 0), 0);
    expect(sum('holdfast_takeovers_total{outcome="taken"}')).toBe(2);
    expect(sum('holdfast_salvaged_runs_total{status="recovered_from_partial"}')).toBe(3);
    expect(sum('holdfast_runs_total{wire="chat_completions",outcome="recovered"}')).toBe(2);
    expect(sum('holdfast_active_runs')).toBe(0);
  });
});

describe('a run that nothing waits for', () => {
  test('is not begun by a replica that drains, but by the next one', async () => {
    const deployment = await start({
      replicas: 2,
      limits: { drain_ms: 60_000 },
      resume: { salvage_after_ms: 1000 },
    });
    try {
      const { holdfast, other } = deployment;
      const endless: Plan = { ...TALK, delay_ms: 200 };
      const busy = await beginTalk(deployment, 'busy', {}, endless, other);
      const lost = await beginTalk(deployment, 'drained', RESUMABLE, SLOW_TALK);
      lost.leave();
      await setTimeout(NOTED_MS);
      process.kill(other.pid, 'SIGTERM');
      await other.logged(({ msg }) => msg === 'draining');
      await holdfast.kill('SIGKILL');
      await setTimeout(LEASE_MS + 3000);
      expect(deployment.requests('drained')).toHaveLength(1);
      const next = await deployment.addReplica();
      const { line } = await endOf([next], lost.run);
      expect(line).toMatchObject({ msg: 'run ended', outcome: 'recovered' });
      expect(deployment.requests('drained')).toHaveLength(2);
      busy.leave();
    } finally {
      await deployment.close();
    }
  }, 60_000);

  test('is given up after max_takeovers that brought nothing new', async () => {
    const deployment = await start({ replicas: 3, resume: { max_takeovers: 1, salvage_after_ms: 1500 } });
    try {
      const faults = [30, 0, 0, 0].map((event) => ({ kind: 'silence', at: { event } }) as const);
      const poison = await beginTalk(deployment, 'poison', RESUMABLE, { ...TALK, faults });
      poison.leave();
      await setTimeout(NOTED_MS);
      await deployment.holdfast.kill('SIGKILL');
      await deployment.asked('poison', 2);
      const isContinued = ({ msg, run }: { msg: string; run?: unknown }) =>
        run === poison.run && msg === 'run continues without a client';
      const [second, third] = deployment.replicas.slice(1) as [HoldfastProcess, HoldfastProcess];
      const [holder, last] = second.log.some(isContinued) ? [second, third] : [third, second];
      await holder.kill('SIGKILL');
      const { line } = await endOf([last], poison.run);
      expect(line).toMatchObject({ msg: 'run salvaged', status: 'recovered_from_partial' });
      expect(deployment.requests('poison')).toHaveLength(2);
    } finally {
      await deployment.close();
    }
  }, 60_000);

  test('is cut after detached_ms', async () => {
    const deployment = await start({ replicas: 2, resume: { detached_ms: 2000 } });
    try {
      const long = await beginTalk(deployment, 'long', RESUMABLE, { ...TALK, delay_ms: 100 });
      long.leave();
      await setTimeout(NOTED_MS);
      await deployment.holdfast.kill('SIGKILL');
      const { line } = await endOf([deployment.other], long.run);
      expect(line).toMatchObject({ msg: 'run ended', outcome: 'cancelled' });
      expect(await statusOf(deployment.other, long.run)).toMatchObject({
        status: 'cancelled',
        end: { cause: 'client_left' },
      });
      expect(deployment.requests('long')).toHaveLength(2);
    } finally {
      await deployment.close();
    }
  }, 60_000);
});
