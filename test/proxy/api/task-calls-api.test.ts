import { describe, expect, it } from 'vitest';
import type { Replica } from '../../replica.ts';
import { CREDENTIAL, deploy, errorOf, postChat, STRANGER } from '../run-deployment.ts';

const CALLS = '/holdfast/v1/tasks/T23/calls';

async function ask(
  { api }: Replica,
  method: string,
  path: string,
  body: unknown,
  headers: Record<string, string> = CREDENTIAL,
) {
  return fetch(`${api}${path}`, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

/** A replica that has answered a request of the task. */
async function begin(owners: readonly Record<string, string>[] = [CREDENTIAL]): Promise<Replica> {
  const { replica } = await deploy();
  for (const owner of owners) {
    const answer = await postChat(replica, { ...owner, 'holdfast-task': 'T23' });
    expect(answer.status).toBe(200);
    await answer.text();
  }
  return replica;
}

const claim = async (replica: Replica, name: string, more: object = {}, headers?: Record<string, string>) => {
  const response = await ask(replica, 'POST', `${CALLS}/c1/claim`, { claim: name, ...more }, headers);
  expect(response.status).toBe(200);
  expect(response.headers.get('cache-control')).toContain('no-store');
  return (await response.json()) as Record<string, unknown>;
};

describe('the tool calls of a task', () => {
  it('are run by the one that claims them first, and done for all others', async () => {
    const replica = await begin();
    expect(await claim(replica, 'first')).toEqual({ outcome: 'run' });
    expect(await claim(replica, 'second')).toMatchObject({ outcome: 'busy' });
    const result = { claim: 'first', result: { sent: true, at: null } };
    const kept = await ask(replica, 'PUT', `${CALLS}/c1/result`, result);
    expect([kept.status, await kept.json()]).toEqual([200, { outcome: 'done', result: result.result }]);
    expect(await claim(replica, 'second')).toEqual({ outcome: 'done', result: result.result });
    const counted = await replica.metrics.registry.metrics();
    for (const [outcome, count] of Object.entries({ run: 1, busy: 1, done: 1, unknown: 0 }))
      expect(counted).toContain(`holdfast_tool_claims_total{outcome="${outcome}"} ${count}`);
  });

  it('are unknown after the time that their claim has named, and run again where they may be', async () => {
    const replica = await begin();
    await claim(replica, 'first', { hold_ms: 1 });
    await new Promise((resolve) => setTimeout(resolve, 5));
    const unknown = await claim(replica, 'second');
    expect(unknown).toEqual({
      outcome: 'unknown',
      claim: 'first',
      claimed_at_ms: expect.any(Number) as number,
    });
    expect(await claim(replica, 'third', { repeat: 'with_key' })).toEqual({ outcome: 'run' });
    const release = () => ask(replica, 'POST', `${CALLS}/c1/release`, { claim: 'third' });
    for (const released of [await release(), await release()])
      expect([released.status, await released.json()]).toEqual([200, { outcome: 'released' }]);
    const late = await ask(replica, 'POST', `${CALLS}/c1/claim`, { claim: 'third' });
    expect(await errorOf(late)).toMatchObject({ status: 409, code: 'claim_released' });
    expect(await claim(replica, 'fourth')).toEqual({ outcome: 'run' });
  });

  it('belong to the credential that they come with', async () => {
    const replica = await begin([CREDENTIAL, STRANGER]);
    await claim(replica, 'first');
    await ask(replica, 'PUT', `${CALLS}/c1/result`, { claim: 'first', result: 'a secret' });
    expect(await claim(replica, 'second', {}, STRANGER)).toEqual({ outcome: 'run' });
  });

  it('may be claimed as soon as the first answer is there, though the task is noted later', async () => {
    const { replica } = await deploy();
    const { notes } = replica.store;
    const put = notes.put.bind(notes);
    const gate = Promise.withResolvers<void>();
    notes.put = async (owner, key, value, ttl_ms) => {
      if (key.kind === 'task') await gate.promise;
      return put(owner, key, value, ttl_ms);
    };
    await (await postChat(replica, { ...CREDENTIAL, 'holdfast-task': 'T23' })).text();
    expect(await claim(replica, 'first')).toEqual({ outcome: 'run' });
    gate.resolve();
    const stranger = await ask(replica, 'POST', `${CALLS}/c1/claim`, { claim: 'third' }, STRANGER);
    expect(stranger.status).toBe(404);
  });

  it('are none where no request of the task was answered for that credential', async () => {
    const replica = await begin();
    for (const [task, owner] of [['T23', STRANGER] as const, ['T24', CREDENTIAL] as const]) {
      const path = `/holdfast/v1/tasks/${task}/calls/c1/claim`;
      const response = await ask(replica, 'POST', path, { claim: 'first' }, owner);
      expect(await errorOf(response)).toMatchObject({ status: 404, code: 'task_not_found' });
    }
  });

  it.each<[string, string, string, unknown, object]>([
    ['no claim', 'POST', 'c1/claim', {}, { code: 'missing_field', param: 'claim' }],
    ['a release of nothing', 'POST', 'c1/release', {}, { code: 'missing_field', param: 'claim' }],
    ['a claim that is no name', 'POST', 'c1/claim', { claim: 7 }, { code: 'invalid_field', param: 'claim' }],
    ['an empty claim', 'POST', 'c1/claim', { claim: '' }, { code: 'invalid_field', param: 'claim' }],
    [
      'a long claim',
      'PUT',
      'c1/result',
      { claim: 'x'.repeat(257) },
      { code: 'invalid_field', param: 'claim' },
    ],
    ['a hold of nothing', 'POST', 'c1/claim', { claim: 'a', hold_ms: 0 }, { param: 'hold_ms' }],
    [
      'a hold of more than a day',
      'POST',
      'c1/claim',
      { claim: 'a', hold_ms: 86_400_001 },
      { param: 'hold_ms' },
    ],
    ['half a hold', 'POST', 'c1/claim', { claim: 'a', hold_ms: 1.5 }, { param: 'hold_ms' }],
    ['another repeat', 'POST', 'c1/claim', { claim: 'a', repeat: 'always' }, { param: 'repeat' }],
    ['a long key', 'POST', `${'k'.repeat(257)}/claim`, { claim: 'a' }, { param: 'key' }],
    ['no JSON', 'POST', 'c1/claim', '{', { code: 'invalid_json' }],
    ['no object', 'POST', 'c1/claim', '[]', { code: 'invalid_json' }],
  ])('are refused: %s', async (_, method, path, body, refusal) => {
    const { replica } = await deploy();
    const response = await ask(replica, method, `${CALLS}/${path}`, body);
    expect(await errorOf(response)).toMatchObject({ status: 400, ...refusal });
  });

  it('are refused what cannot be noted: the result of a call that was not claimed, and one that is too long', async () => {
    const replica = await begin();
    const result = `${CALLS}/c1/result`;
    const early = await ask(replica, 'PUT', result, { claim: 'first', result: 1 });
    expect(await errorOf(early)).toMatchObject({ status: 409, code: 'call_not_claimed' });
    await claim(replica, 'first');
    const long = await ask(replica, 'PUT', result, { claim: 'first', result: 'x'.repeat(20_000) });
    expect(await errorOf(long)).toMatchObject({ status: 413, code: 'result_too_large' });
    const huge = await ask(replica, 'PUT', result, { claim: 'first', result: 'x'.repeat(10_000_000) });
    expect(await errorOf(huge)).toMatchObject({ status: 413, code: 'result_too_large' });
    const another = await ask(replica, 'POST', `${CALLS}/c1/release`, { claim: 'second' });
    expect(await errorOf(another)).toMatchObject({ status: 409, code: 'call_not_claimed' });
    const kept = await ask(replica, 'PUT', result, { claim: 'first' });
    expect(await kept.json()).toEqual({ outcome: 'done' });
    const late = await ask(replica, 'POST', `${CALLS}/c1/release`, { claim: 'first' });
    expect(await errorOf(late)).toMatchObject({ status: 409, code: 'call_done' });
  });
});
