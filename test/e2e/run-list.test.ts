import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { Deployment } from './deployment.ts';
import type { HoldfastProcess } from './holdfast-process.ts';
import { beginTalk, fetchRun, fetchRuns, RESUMABLE } from './talk.ts';

const LEASE_MS = 1000;
const SOON = { timeout: 15_000, interval: 50 } as const;

interface Page {
  readonly data: readonly Readonly<Record<string, unknown>>[];
  readonly has_more: boolean;
  readonly next: string | null;
}

let deployment: Deployment;
beforeAll(async () => {
  deployment = await Deployment.start({ replicas: 2, checkpoint: { lease_ms: LEASE_MS } });
});
afterAll(() => deployment.close());

async function list(
  replica: HoldfastProcess,
  query?: string,
  credential?: Readonly<Record<string, string>>,
): Promise<Page> {
  const response = await fetchRuns(replica, query, credential);
  expect(response.status).toBe(200);
  return (await response.json()) as Page;
}

test('a client that has lost its runs finds them by their thread, at every replica, with the states that they have', async () => {
  const { holdfast, other } = deployment;
  const named = { 'holdfast-thread': 'the named one' };
  const whole = await beginTalk(deployment, 'whole', named);
  await whole.ended();
  const derived = await beginTalk(deployment, 'derived', { 'x-claude-code-session-id': 'the derived one' });
  await derived.ended();
  const lost = await beginTalk(deployment, 'lost', { ...RESUMABLE, ...named });

  // Journals are written in the background.
  await vi.waitFor(
    async () =>
      expect((await list(other)).data).toMatchObject([
        { id: lost.run, status: 'running', thread: 'the named one', holder: 'alive' },
        { id: derived.run, status: 'complete', thread: 'the derived one' },
        { id: whole.run, status: 'complete', thread: 'the named one', model: 'vllm-model' },
      ]),
    SOON,
  );
  expect((await list(holdfast, '?thread=the%20derived%20one')).data).toMatchObject([{ id: derived.run }]);
  expect((await list(holdfast, '?thread=the%20named%20one&state=running')).data).toMatchObject([
    { id: lost.run },
  ]);
  const first = await list(other, '?limit=2');
  expect([first.data.length, first.has_more]).toEqual([2, true]);
  expect(await list(other, `?limit=2&after=${first.next}`)).toMatchObject({
    data: [{ id: whole.run }],
    has_more: false,
  });
  expect(await list(other, '', { authorization: 'Bearer another key' })).toMatchObject({ data: [] });
  expect((await fetchRuns(other, '?state=lost')).status).toBe(400);

  await holdfast.kill('SIGKILL');
  await lost.ended();
  await vi.waitFor(
    async () =>
      expect((await list(other, '?thread=the%20named%20one')).data).toMatchObject([
        { id: lost.run, holder: expect.stringMatching(/lost|released/) },
        { id: whole.run },
      ]),
    SOON,
  );
  await fetchRun(other, lost.run, { method: 'DELETE' });
  expect((await list(other, '?state=cancelled')).data).toMatchObject([{ id: lost.run, partial: true }]);
  expect((await fetchRun(other, `${lost.run}?purge=true`, { method: 'DELETE' })).status).toBe(200);
  expect((await list(other)).data.map(({ id }) => id)).toEqual([derived.run, whole.run]);
});
