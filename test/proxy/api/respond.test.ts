import { describe, expect, it } from 'vitest';
import type { Relay } from '../../../src/proxy/run/context/run-context.ts';
import { deploy, errorOf, fetchRun, OWNER, postChat } from '../run-deployment.ts';

/** Loses its run before anything is delivered. `lose`: what happens to the run afterwards. */
const losing =
  (lose: Relay): Relay =>
  async (run, client, context) => {
    await context.store.acquire(run.id, run.owner);
    return lose(run, client, context);
  };

describe('a run that is taken over before its response was opened', () => {
  it('is to be asked for again', async () => {
    const { replica, other } = await deploy({
      relay: losing(async (run) => {
        await other.acquire(run.id, OWNER, 1);
        return 'superseded';
      }),
    });
    const response = await postChat(replica);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'retry-after': '1',
      'retry-after-ms': '1000',
    });
    expect(await errorOf(response)).toEqual({ status: 503, code: 'run_taken_over', param: null });
  });

  it('is not, if the replica that took it cancelled it', async () => {
    const { replica } = await deploy({
      relay: losing(async (run, _client, { store }) => {
        await store.finish(await store.acquire(run.id, run.owner, 1), { status: 'cancelled', at_ms: 0 });
        return 'superseded';
      }),
    });
    expect(await errorOf(await postChat(replica))).toMatchObject({ status: 410, code: 'run_cancelled' });
  });

  it('is, while the store does not tell what became of it', async () => {
    const { replica } = await deploy({
      relay: losing(async () => {
        replica.store.fault = new Error('connection lost');
        return 'superseded';
      }),
    });
    expect(await errorOf(await postChat(replica))).toMatchObject({ status: 503, code: 'run_taken_over' });
  });

  it('is, after it was opened, broken off instead', async () => {
    const { replica, other } = await deploy({
      relay: losing(async (run, client) => {
        client.open({ 'holdfast-run-id': run.id });
        client.write('data: 1\n\n');
        await other.acquire(run.id, OWNER, 1);
        return 'superseded';
      }),
    });
    const response = await postChat(replica);
    await expect(response.text()).rejects.toThrow('terminated');
    const run = String(response.headers.get('holdfast-run-id'));
    expect(await (await fetchRun(replica, run)).json()).toMatchObject({ status: 'running', takeovers: 1 });
  });
});
