import { stream } from '@durable-streams/client';
import { describe, expect, it, vi } from 'vitest';
import { MemoryRuns } from '../../../src/checkpoint/memory/runs.ts';
import { relay } from '../../../src/proxy/run/relay.ts';
import { HEADER } from '../../checkpoint/fixtures.ts';
import { chunkEvent, providerRequests, startProvider, streamOneWord } from '../../http-peer.ts';
import { type Replica, startReplica, upstreamsAt } from '../../replica.ts';
import { BODY, CREDENTIAL, deploy, errorOf, fetchRun, OWNER, postChat, STRANGER } from '../run-deployment.ts';
import { deployTasks } from './task-deployment.ts';

interface Chunk {
  readonly choices: readonly { readonly delta: { readonly content?: string } }[];
  readonly error?: { readonly code: string };
}

const said = (chunks: readonly Chunk[]): string =>
  chunks.map(({ choices, error }) => error?.code ?? choices[0]?.delta.content ?? '').join('');

const urlOf = ({ api }: Replica, run: string) => `${api}/holdfast/v1/runs/${run}/stream`;

const readWith = (replica: Replica, run: string, live: boolean | 'long-poll' | 'sse', offset = '-1') =>
  stream<Chunk>({ url: urlOf(replica, run), headers: CREDENTIAL, live, offset, warnOnHttp: false });

/** The client's chunks at the end. `onChunk`: called with all chunks so far. */
async function toItsEnd(
  response: Awaited<ReturnType<typeof readWith>>,
  onChunk: (chunks: readonly Chunk[]) => void = () => {},
): Promise<readonly Chunk[]> {
  const chunks: Chunk[] = [];
  for await (const chunk of response.jsonStream()) {
    chunks.push(chunk);
    onChunk(chunks);
  }
  return chunks;
}

async function completeRun(replica: Replica): Promise<string> {
  const answer = await postChat(replica);
  await answer.text();
  const run = String(answer.headers.get('holdfast-run-id'));
  await vi.waitFor(async () =>
    expect((await read(replica, run, 'offset=-1')).headers.get('stream-closed')).toBe('true'),
  );
  return run;
}

const read = (replica: Replica, run: string, query: string, init: RequestInit = {}) =>
  fetchRun(replica, `${run}/stream?${query}`, init);

const positionOf = ({ headers }: Response) => ({
  offset: headers.get('stream-next-offset'),
  isUpToDate: headers.get('stream-up-to-date'),
  isClosed: headers.get('stream-closed'),
});

describe('the published client', () => {
  it.each([false, 'long-poll', 'sse'] as const)('reads a run that is over, live: %s', async (live) => {
    const { replica, other } = await deployTasks();
    const run = await completeRun(replica);
    const response = await readWith(other, run, live);
    expect(said(await response.json())).toBe('kelp');
    expect(response.streamClosed).toBe(true);
  });

  it.each(['long-poll', 'sse'] as const)('follows a run to its end at another replica: %s', async (live) => {
    const { replica, other, provider } = await deployTasks();
    provider.manner = 'begins';
    const answer = await postChat(replica);
    const run = String(answer.headers.get('holdfast-run-id'));
    const response = await readWith(other, run, live);
    const chunks = await toItsEnd(response, (so_far) => {
      if (said(so_far) === 'kel') provider.finish();
    });
    expect(response.streamClosed).toBe(true);
    expect(said(chunks)).toBe('kel');
    await answer.text();
  });

  it('continues at an offset that it has kept, at another replica', async () => {
    const { replica, other } = await deployTasks();
    const run = await completeRun(replica);
    const first = await readWith(replica, run, false);
    expect(said(await first.json())).toBe('kelp');
    const rest = await readWith(other, run, 'sse', first.offset);
    expect(await rest.json()).toEqual([]);
    expect(rest.streamClosed).toBe(true);
  });
});

describe('a stored stream', () => {
  it('is the payloads of the run, and the same at every position, however often it is read', async () => {
    const { replica, other } = await deployTasks();
    const run = await completeRun(replica);
    const whole = await read(replica, run, 'offset=-1');
    expect(whole.headers.get('content-type')).toContain('application/json');
    const payloads = (await whole.json()) as Chunk[];
    expect(payloads.length).toBeGreaterThan(1);
    const events = (await (await read(other, run, 'starting_after=0')).text()).match(/^data: .*$/gm);
    expect(payloads.map((payload) => `data: ${JSON.stringify(payload)}`)).toEqual(events?.slice(0, -1));
    const end = positionOf(whole);
    expect(end).toMatchObject({ isUpToDate: 'true', isClosed: 'true' });
    for (let seq = 0; seq < payloads.length; seq++) {
      const offset = `${String(seq).padStart(15, '0')}.1`;
      const rest = await read(seq % 2 === 0 ? replica : other, run, `offset=${offset}`);
      expect(await rest.json()).toEqual(payloads.slice(seq));
      expect(positionOf(rest)).toEqual(end);
    }
  });

  it('ends with the error of a run that was cancelled, and not as an answer', async () => {
    const { replica, other, provider } = await deployTasks();
    provider.manner = 'begins';
    const answer = await postChat(replica);
    const run = String(answer.headers.get('holdfast-run-id'));
    const all = toItsEnd(await readWith(other, run, 'sse'));
    expect((await fetchRun(other, run, { method: 'DELETE' })).status).toBe(200);
    expect(said(await all)).toMatch(/run_cancelled$/);
    await answer.body?.cancel();
  });

  it('is not sent again to a reader that has it', async () => {
    const { replica } = await deployTasks();
    const run = await completeRun(replica);
    const etag = String((await read(replica, run, 'offset=-1')).headers.get('etag'));
    const again = await read(replica, run, 'offset=-1', { headers: { 'if-none-match': etag } });
    expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag]);
    const other = await read(replica, run, 'offset=-1', { headers: { 'if-none-match': '"x"' } });
    expect(other.status).toBe(200);
    const foreign = await read(replica, run, 'offset=-1', {
      headers: { ...STRANGER, 'if-none-match': etag },
    });
    expect(foreign.status).toBe(404);
  });

  it('says where it ends', async () => {
    const { replica } = await deployTasks();
    const run = await completeRun(replica);
    const end = positionOf(await read(replica, run, 'offset=-1'));
    const head = await fetchRun(replica, `${run}/stream`, { method: 'HEAD' });
    expect([head.status, positionOf(head), head.headers.get('cache-control')]).toEqual([
      200,
      end,
      'private, no-cache, no-store',
    ]);
    const now = await read(replica, run, 'offset=now');
    expect([positionOf(now), await now.json()]).toEqual([end, []]);
    const poll = await read(replica, run, `offset=${end.offset}&live=long-poll`);
    expect([poll.status, positionOf(poll)]).toEqual([204, end]);
  });

  it.each(['offset=x', 'offset=', 'offset=-1&live=x', 'live=sse', 'offset=-1&offset=-1'])(
    'is not read by %s',
    async (query) => {
      const { replica } = await deploy();
      const run = await fetchRun(replica, `run_AAAAAAAAAAAAAAAAAAAAAA/stream?${query}`);
      expect((await errorOf(run)).status).toBe(400);
    },
  );

  it('has no position beyond its end, nor one of an epoch that the store has lost', async () => {
    const { replica } = await deployTasks();
    const run = await completeRun(replica);
    for (const offset of ['000000000000999.1', '000000000000001.2-5f3c0a9e'])
      for (const live of ['', '&live=long-poll', '&live=sse'])
        expect(await errorOf(await read(replica, run, `offset=${offset}${live}`))).toMatchObject({
          status: 409,
          code: 'cursor_ahead',
        });
  });

  it('comes in batches, each of which says that there is more', async () => {
    const { replica, begin, other } = await deploy();
    const content = 'x'.repeat(400_000);
    const payload = chunkEvent({ content }).slice('data: '.length).trim();
    const event = { deltas: [{ kind: 'text', text: content } as const], payload };
    const lease = await begin([
      { seq: 0, header: HEADER, events: [] },
      { seq: 7, events: Array(7).fill(event) },
    ]);
    await other.finish(lease, { status: 'complete', at_ms: 1 });
    const sizes: number[] = [];
    for (let [offset, isClosed] = ['-1', false]; !isClosed; ) {
      const batch = await read(replica, lease.run, `offset=${offset}`);
      sizes.push(((await batch.json()) as unknown[]).length);
      ({ offset, isClosed } = {
        offset: String(positionOf(batch).offset),
        isClosed: positionOf(batch).isClosed === 'true',
      });
    }
    expect(sizes).toEqual([3, 3, 2]);
  });
});

describe('a run whose replica is lost', () => {
  async function lost(api_key: string | undefined) {
    const provider = providerRequests();
    const root = await startProvider(provider.listener);
    const runs = new MemoryRuns();
    const tree = upstreamsAt(`${root}/v1`, api_key === undefined ? {} : { api_key });
    const replica = await startReplica(tree, { relay, runs });
    const lease = await replica.store.acquire('run_AAAAAAAAAAAAAAAAAAAAAA', OWNER);
    const payload = chunkEvent({ role: 'assistant', content: 'Hel' }).slice('data: '.length).trim();
    await replica.store.append(lease, [
      { seq: 0, header: { ...HEADER, body: BODY }, events: [] },
      { seq: 1, events: [{ deltas: [{ kind: 'text', text: 'Hel' }], payload }] },
    ]);
    await replica.store.release(lease);
    return { provider, replica, run: lease.run };
  }

  it.each(['long-poll', 'sse'] as const)('is continued for a reader that waits: %s', async (live) => {
    const { provider, replica, run } = await lost('sk-operator');
    const all = toItsEnd(await readWith(replica, run, live));
    const { request, response: upstream } = await provider.next();
    request.resume();
    streamOneWord(upstream, 'lo');
    expect(said(await all)).toMatch(/^Hel.*lo$/);
  });

  it('is continued with the key that the reader brings', async () => {
    const { provider, replica, run } = await lost(undefined);
    const all = toItsEnd(await readWith(replica, run, 'sse'));
    const { request, response } = await provider.next();
    expect(request.headers.authorization).toBe(CREDENTIAL.authorization);
    request.resume();
    streamOneWord(response, 'lo');
    expect(said(await all)).toMatch(/^Hel.*lo$/);
  });

  it('is left alone by a reader that does not wait', async () => {
    const { replica, run } = await lost('sk-operator');
    const before = await replica.store.read(run, OWNER, 0);
    const batch = await read(replica, run, 'offset=-1');
    expect(said((await batch.json()) as Chunk[])).toBe('Hel');
    expect(positionOf(batch)).toMatchObject({ isUpToDate: 'true', isClosed: null });
    expect(await replica.store.read(run, OWNER, 0)).toEqual(before);
  });
});
