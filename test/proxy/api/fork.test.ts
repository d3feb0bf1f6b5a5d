import { describe, expect, it } from 'vitest';
import type { RunEnd, RunId } from '../../../src/checkpoint/store.ts';
import { HEADER, HEADER_RECORD, textEvent, textRecord } from '../../checkpoint/fixtures.ts';
import { BODY, deploy, errorOf, fetchRun, OWNER, resume } from '../run-deployment.ts';

const STORED_REQUEST = { ...HEADER_RECORD, header: { ...HEADER, body: BODY } };
const chunk = (content: string): string =>
  JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content } }] });
const tail = (...texts: string[]) => texts.map(chunk);
const RESUMABLE = { 'holdfast-resume': '1' };

/** The first client has four events, of which two were stored before another replica continued the run differently. */
async function takenOver({
  end,
  header = STORED_REQUEST,
}: {
  end?: RunEnd;
  header?: typeof HEADER_RECORD;
} = {}) {
  const deployment = await deploy();
  const { run, owner } = await deployment.begin([header, textRecord(0, 'a', 'b')]);
  const { other } = deployment;
  const lease = await other.acquire(run, owner, 1);
  await other.append(lease, [textRecord(2, 'c', 'd', 'e', 'f')]);
  if (end) await other.finish(lease, end);
  const back = (cursor: number, ...texts: string[]) =>
    resume(deployment.replica, run, { cursor, tail: tail(...texts) }, RESUMABLE);
  return { ...deployment, run, back };
}

const COMPLETE: RunEnd = { status: 'complete', at_ms: 1 };
const runIn = (response: Response) => (response.headers.get('holdfast-run-id') ?? '') as RunId;

describe('a client that has another answer than the log', () => {
  it.each([undefined, COMPLETE])('keeps it under a new run id (%j)', async (end) => {
    const { replica, readers, run, back } = await takenOver({ ...(end && { end }) });
    const response = await back(4, 'b', 'C', 'D');
    const fork = runIn(response);

    expect(response.status).toBe(200);
    expect(fork).toMatch(/^run_/);
    expect(fork).not.toBe(run);
    expect(response.headers.get('location')).toBe(`/holdfast/v1/runs/${fork}/stream`);
    expect(await response.text()).toBe('data: after 4 of 2\n\n');
    expect(readers).toMatchObject([{ run: fork, cursor: 4, tail: tail('b', 'C', 'D') }]);
    expect(readers[0]).not.toHaveProperty('epoch');
    expect(await replica.store.read(fork, OWNER, 0)).toMatchObject({
      status: 'running',
      holder: { state: 'released' },
      seq: 2,
      records: [
        { header: { ...STORED_REQUEST.header, continues: run } },
        { seq: 2, events: [textEvent('a'), textEvent('b')] },
      ],
    });
    // The original run is unchanged.
    const { seq, status } = (await replica.store.read(run, OWNER, 0)) ?? {};
    expect({ seq, status }).toEqual({ seq: 6, status: end ? 'complete' : 'running' });
    expect(await (await fetchRun(replica, fork)).json()).toMatchObject({ continues: run });
  });

  it('comes back to the same one again, and another client with another answer to another one', async () => {
    const { back } = await takenOver();
    const forks = [];
    for (const texts of [
      ['C', 'D'],
      ['C', 'D'],
      ['C', 'X'],
      ['C', 'D'],
    ])
      forks.push(runIn(await back(4, ...texts)));
    const together = await Promise.all(Array.from({ length: 4 }, () => back(4, 'Y', 'Z')));

    expect(new Set(forks).size).toBe(2);
    expect([forks[1], forks[3]]).toEqual([forks[0], forks[0]]);
    expect(new Set(together.map(runIn)).size).toBe(1);
    expect(forks).not.toContain(runIn(together[0] as Response));
  });

  it('comes back to its own run with the ids of the first one', async () => {
    const { replica, run, back } = await takenOver();
    const fork = runIn(await back(4, 'C', 'D'));
    const id = { ...RESUMABLE, 'last-event-id': `${run}.1.4` };
    const response = await resume(replica, run, { cursor: 4, tail: tail('C', 'D') }, id);

    expect(fork).not.toBe(run);
    expect(runIn(response)).toBe(fork);
  });

  it('brings its request where that was not stored', async () => {
    const { replica, run, readers } = await takenOver({ header: HEADER_RECORD });
    const had = { cursor: 4, tail: tail('C', 'D') };
    expect(await errorOf(await resume(replica, run, had))).toMatchObject({
      status: 409,
      code: 'tail_mismatch',
    });
    const request = { path: '/v1/chat/completions', body: BODY };
    const response = await resume(replica, run, { ...had, request }, RESUMABLE);

    expect(response.status).toBe(200);
    expect(readers).toHaveLength(1);
    expect(
      readers[0]?.revive((await replica.store.read(runIn(response), OWNER, 0))?.records[0]?.header),
    ).toMatchObject({
      id: runIn(response),
      body: BODY,
    });
  });

  it('is refused as before where events are missing, where it says otherwise of what both had, and after a cancellation', async () => {
    const { back, readers } = await takenOver();
    expect(await errorOf(await back(4))).toMatchObject({ status: 409, code: 'cursor_ahead' });
    expect(await errorOf(await back(4, 'D'))).toMatchObject({ status: 409, code: 'tail_incomplete' });
    expect(await errorOf(await back(4, 'B', 'C', 'D'))).toMatchObject({ status: 409, code: 'tail_mismatch' });
    const cancelled = await takenOver({ end: { status: 'cancelled', at_ms: 1 } });
    expect(await errorOf(await cancelled.back(4, 'C', 'D'))).toMatchObject({
      status: 409,
      code: 'tail_mismatch',
    });
    expect(readers).toEqual([]);
  });

  it('is refused where answers cannot be joined', async () => {
    const body = BODY.replace('"stream":true', '"stream":true,"n":2');
    const { back } = await takenOver({ header: { ...HEADER_RECORD, header: { ...HEADER, body } } });
    expect(await errorOf(await back(4, 'C', 'D'))).toMatchObject({ status: 409, code: 'tail_mismatch' });
  });
});

describe('a client of a run that was salvaged meanwhile', () => {
  async function salvaged(end: RunEnd, header: typeof HEADER_RECORD = STORED_REQUEST) {
    const deployment = await deploy();
    const lease = await deployment.begin([header, textRecord(0, 'a', 'b')]);
    await deployment.other.finish(lease, end);
    return { ...deployment, run: lease.run };
  }
  const LOST: RunEnd = { status: 'recovered_from_partial', at_ms: 1, cause: 'replica_lost' };

  it.each([
    ['replica was lost', LOST],
    ['client had left', { status: 'cancelled', at_ms: 1, cause: 'client_left' } as const],
  ])('whose %s has the rest in a new run', async (_, end) => {
    const { replica, run, readers } = await salvaged(end);
    for (const had of [
      { cursor: 2, tail: tail('a', 'b') },
      { cursor: 3, tail: tail('b', 'c') },
    ]) {
      const response = await resume(replica, run, had, RESUMABLE);
      expect(await response.text()).toBe(`data: after ${had.cursor} of 2\n\n`);
      expect(runIn(response)).not.toBe(run);
      expect(readers.at(-1)).toMatchObject({ ...had, run: runIn(response) });
    }
  });

  it('has its own answer in a run of its own where another replica had told another one before', async () => {
    const { run, replica, back } = await takenOver({ end: LOST });
    const [own, shared] = [runIn(await back(4, 'C', 'D')), runIn(await back(4, 'c', 'd'))];
    expect(new Set([own, shared, run]).size).toBe(3);
    const seqs = [own, shared].map(async (id) => (await replica.store.read(id, OWNER, 0))?.seq);
    expect(await Promise.all(seqs)).toEqual([2, 6]);
  });

  it.each([
    ['its request is not known', LOST, HEADER_RECORD],
    ['it was given up', { ...LOST, status: 'failed' } as const, STORED_REQUEST],
    ['it was cancelled', { status: 'cancelled', at_ms: 1 } as const, STORED_REQUEST],
  ])('has its end where %s', async (_, end, header) => {
    const { replica, run, readers } = await salvaged(end, header);
    const response = await resume(replica, run, { cursor: 2, tail: tail('a', 'b') }, RESUMABLE);
    expect(runIn(response)).toBe(run);
    expect(readers).toMatchObject([{ run, cursor: 2 }]);
  });

  it('is not one that only reads what there is of it', async () => {
    const { replica, run, readers } = await salvaged(LOST);
    for (const path of [`${run}/stream`, `${run}/stream?starting_after=2`]) {
      const response = await fetchRun(replica, path);
      expect(runIn(response)).toBe(run);
    }
    expect(readers).toMatchObject([{ run }, { run }]);
  });
});
