import { describe, expect, it, vi } from 'vitest';
import type { RunHeader } from '../../../src/checkpoint/journal.ts';
import type { Lease, RunId, RunStatus } from '../../../src/checkpoint/store.ts';
import { COMPLETE, HEADER, newRunId, textRecord } from '../../checkpoint/fixtures.ts';
import type { Replica } from '../../replica.ts';
import {
  CREDENTIAL,
  type Deployment,
  deploy,
  errorOf,
  fetchRun,
  OWNER,
  STRANGER,
} from '../run-deployment.ts';

interface Listed {
  readonly id: RunId;
  readonly status: RunStatus;
}
interface Page {
  readonly object: string;
  readonly data: readonly Listed[];
  readonly has_more: boolean;
  readonly next: string | null;
}

const LOOKED_INTO_MAX = 100;

const fetchList = (replica: Replica, query = '', headers: Record<string, string> = CREDENTIAL) =>
  fetch(`${replica.api}/holdfast/v1/runs${query}`, { headers });

async function list(replica: Replica, query = '', headers?: Record<string, string>): Promise<Page> {
  const response = await fetchList(replica, query, headers);
  expect(response.status).toBe(200);
  return (await response.json()) as Page;
}

const idsOf = ({ data }: Page): RunId[] => data.map(({ id }) => id);

/** All pages, in order. */
async function walk(replica: Replica, query: string): Promise<Page[]> {
  const pages: Page[] = [];
  for (let after = ''; ; ) {
    const page = await list(replica, `?${query}${after}`);
    pages.push(page);
    expect(page.next === null).toBe(!page.has_more);
    if (page.next === null) return pages;
    after = `&after=${page.next}`;
  }
}

/** A run that began `at_ms` after the fixture's time. */
function beginAt({ begin }: Deployment, at_ms: number, own: Partial<RunHeader> = {}): Promise<Lease> {
  const header = { ...HEADER, created_at_ms: HEADER.created_at_ms + at_ms, ...own };
  return begin([{ seq: 0, header, events: [] }, textRecord(0, 'a secret ', 'answer')]);
}

async function beginMany(deployment: Deployment, count: number): Promise<RunId[]> {
  const runs: RunId[] = [];
  for (let at_ms = 0; at_ms < count; at_ms++) runs.unshift((await beginAt(deployment, at_ms)).run);
  return runs;
}

describe('the list of runs', () => {
  it('is empty for an owner without any', async () => {
    const { replica } = await deploy();
    expect(await list(replica)).toEqual({ object: 'list', data: [], has_more: false, next: null });
  });

  it('says what there is to tell of a run, and nothing of its answer', async () => {
    const deployment = await deploy();
    const { replica } = deployment;
    const { run } = await beginAt(deployment, 0, { thread: 'a thread' });
    const response = await fetchList(replica);
    expect(response.headers.get('cache-control')).toBe('private, no-cache, no-store');
    const page = (await response.json()) as Page;
    expect(page.data).toEqual([
      {
        id: run,
        object: 'holdfast.run',
        wire: 'chat_completions',
        status: 'running',
        created_at: HEADER.created_at_ms / 1000,
        model: 'gpt-test',
        upstream: 'provider',
        thread: 'a thread',
        task: null,
        step: null,
        step_name: null,
        continues: null,
        cursor: 2,
        epoch: 1,
        takeovers: 0,
        holder: 'alive',
        partial: true,
        end: null,
      },
    ]);
    expect(await (await fetchRun(replica, run)).json()).toMatchObject({ ...page.data[0] });
  });

  it('is that of its owner alone', async () => {
    const deployment = await deploy();
    const { replica } = deployment;
    const { run } = await beginAt(deployment, 0, { thread: 'shared' });
    for (const query of ['', '?thread=shared', '?state=running', `?after=9999999999999.${newRunId()}`]) {
      expect(idsOf(await list(replica, query))).toEqual([run]);
      expect(idsOf(await list(replica, query, STRANGER))).toEqual([]);
    }
    expect(idsOf(await list(replica, '', { 'x-api-key': 'the owner' }))).toEqual([run]);
  });

  /** Clients without a credential share an owner, so a list would reveal the ids that keep their runs apart. */
  it.each([{}, { authorization: '' }, { 'x-api-key': '' }])(
    'is not for a client without a credential: %o',
    async (headers) => {
      const { replica } = await deploy();
      const response = await fetchList(replica, '', headers as Record<string, string>);
      expect(await errorOf(response)).toEqual({ status: 400, code: 'missing_field', param: 'Authorization' });
    },
  );

  it('is that of one thread, whatever its name', async () => {
    const deployment = await deploy();
    const name = 'a/b?c=1&d é 🌊';
    const first = await beginAt(deployment, 1, { thread: name });
    await beginAt(deployment, 2, { thread: 'a/b' });
    await beginAt(deployment, 3);
    const second = await beginAt(deployment, 4, { thread: name });
    const of = async (thread: string) =>
      idsOf(await list(deployment.replica, `?thread=${encodeURIComponent(thread)}`));
    expect(await of(name)).toEqual([second.run, first.run]);
    expect(await of('nobody')).toEqual([]);
  });

  it('tells the states that runs have now, and finds them by these', async () => {
    const deployment = await deploy();
    const { replica, other } = deployment;
    const states = ['complete', 'failed', 'cancelled', 'recovered_from_partial', 'timeout_partial'] as const;
    const runs: Record<string, RunId> = { running: (await beginAt(deployment, 9)).run };
    for (const [at_ms, status] of states.entries()) {
      const lease = await beginAt(deployment, at_ms, { thread: 't' });
      runs[status] = lease.run;
      expect(idsOf(await list(replica, '?state=running'))).toContain(lease.run);
      await other.finish(lease, { status, at_ms: 1_700_000_009_000, cause: 'a cause' });
    }
    for (const [state, run] of Object.entries(runs))
      expect((await list(replica, `?state=${state}`)).data).toMatchObject([{ id: run, status: state }]);
    expect(idsOf(await list(replica, '?state=running&thread=t'))).toEqual([]);
    expect((await list(replica, '?state=failed&thread=t')).data).toMatchObject([
      { partial: true, end: { status: 'failed', at: 1_700_000_009, cause: 'a cause' } },
    ]);
  });

  it('leaves out what was purged or has expired, and forgets its entry', async () => {
    const deployment = await deploy();
    const { replica, other } = deployment;
    const [purged, kept, expired] = [
      await beginAt(deployment, 1),
      await beginAt(deployment, 2),
      await beginAt(deployment, 3),
    ];
    const response = await fetchRun(replica, `${purged.run}?purge=true`, { method: 'DELETE' });
    expect(response.status).toBe(200);
    expect(idsOf(await list(replica))).toEqual([expired.run, kept.run]);
    const { read } = replica.store;
    vi.spyOn(replica.store, 'read').mockImplementation((run, owner, from) =>
      run === expired.run ? Promise.resolve(null) : read.call(replica.store, run, owner, from),
    );
    expect(idsOf(await list(replica, '?limit=1'))).toEqual([kept.run]);
    await vi.waitFor(async () => expect(await other.index.list(OWNER)).toHaveLength(1));
  });

  it('is answered with 503 while the store fails, or does not answer', async () => {
    const deployment = await deploy();
    const { replica } = deployment;
    await beginAt(deployment, 1);
    replica.store.fault = new Error('connection lost');
    expect(await errorOf(await fetchList(replica))).toMatchObject({ status: 503, code: 'store_unavailable' });
    replica.store.fault = undefined;
    vi.spyOn(replica.store, 'read').mockRejectedValue(new Error('connection lost'));
    expect(await errorOf(await fetchList(replica))).toMatchObject({ status: 503, code: 'store_unavailable' });
  });
});

describe('pages of runs', () => {
  it('are of twenty runs each unless something else is asked for, the newest first', async () => {
    const deployment = await deploy();
    const runs = await beginMany(deployment, 45);
    const pages = await walk(deployment.replica, '');
    expect(pages.map(({ data }) => data.length)).toEqual([20, 20, 5]);
    expect(pages.flatMap(idsOf)).toEqual(runs);
    for (const [limit, lengths] of [
      [100, [45]],
      [45, [45]],
      [44, [44, 1]],
    ] as const) {
      const asked = await walk(deployment.replica, `limit=${limit}`);
      expect(asked.map(({ data }) => data.length)).toEqual(lengths);
      expect(asked.flatMap(idsOf)).toEqual(runs);
    }
  });

  it('tell each run once, also of those that began at the same time', async () => {
    const deployment = await deploy();
    const runs = new Set<RunId>();
    for (let i = 0; i < 12; i++) runs.add((await beginAt(deployment, 0)).run);
    const told = (await walk(deployment.replica, 'limit=5')).flatMap(idsOf);
    expect(told).toHaveLength(12);
    expect(new Set(told)).toEqual(runs);
  });

  it('are not moved by runs that begin or are purged between them', async () => {
    const deployment = await deploy();
    const { replica, other } = deployment;
    const runs = await beginMany(deployment, 6);
    const first = await list(replica, '?limit=3');
    await beginAt(deployment, 100);
    const last = runs[2] as RunId;
    await other.finish({ run: last, owner: OWNER, epoch: 1 }, COMPLETE);
    await other.purge(last, OWNER);
    expect(idsOf(await list(replica, `?limit=3&after=${first.next}`))).toEqual(runs.slice(3));
  });

  it('look into so many runs and no more, and say where to continue', async () => {
    const deployment = await deploy();
    const { replica, other } = deployment;
    const [oldest] = (await beginMany(deployment, 1)) as [RunId];
    for (let at_ms = 1; at_ms <= LOOKED_INTO_MAX + 30; at_ms++)
      await other.finish(await beginAt(deployment, at_ms), COMPLETE);
    const read = vi.spyOn(replica.store, 'read');
    const first = await list(replica, '?state=running&limit=1');
    expect(first).toMatchObject({ data: [], has_more: true });
    expect(read).toHaveBeenCalledTimes(LOOKED_INTO_MAX);
    const second = await list(replica, `?state=running&limit=1&after=${first.next}`);
    expect(second).toMatchObject({ data: [{ id: oldest }], has_more: false, next: null });
    expect(read).toHaveBeenCalledTimes(LOOKED_INTO_MAX + 31);
  });
});

describe('a list that is asked for wrongly', () => {
  const bad: readonly (readonly [param: string, query: string])[] = [
    ['thread', 'thread='],
    ['thread', `thread=${'x'.repeat(257)}`],
    ['thread', 'thread=a&thread=b'],
    ['state', 'state='],
    ['state', 'state=done'],
    ['state', 'state=RUNNING'],
    ['state', 'state=running&state=failed'],
    ['limit', 'limit='],
    ['limit', 'limit=0'],
    ['limit', 'limit=-1'],
    ['limit', 'limit=101'],
    ['limit', 'limit=1.5'],
    ['limit', 'limit=1e1'],
    ['limit', 'limit=%201'],
    ['limit', 'limit=1&limit=2'],
    ['after', 'after='],
    ['after', 'after=x'],
    ['after', 'after=1.run_short'],
    ['after', `after=${newRunId()}`],
    ['after', `after=1.${newRunId()}&after=2.${newRunId()}`],
  ];

  it.each(bad)('learns that %s is wrong: %s', async (param, query) => {
    const { replica } = await deploy();
    const response = await fetchList(replica, `?${query}`);
    expect(await errorOf(response)).toEqual({ status: 400, code: 'invalid_field', param });
  });

  it('learns what there is to choose from', async () => {
    const { replica } = await deploy();
    const { error } = (await (await fetchList(replica, '?state=done')).json()) as {
      error: { message: string };
    };
    expect(error.message).toBe(
      "Invalid value for 'state': it must be one of running, complete, failed, cancelled, recovered_from_partial, timeout_partial.",
    );
  });
});
