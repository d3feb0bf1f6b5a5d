import { expect, onTestFinished, test } from 'vitest';
import { MemoryRuns } from '../../src/checkpoint/memory/runs.ts';
import { resumable } from '../../src/client/index.ts';
import { relay } from '../../src/proxy/run/relay.ts';
import { createUndiciTransport } from '../../src/proxy/upstream/undici-transport.ts';
import { startProvider } from '../provider/provider.ts';
import { startReplica } from '../replica.ts';
import { readMessages } from '../simulation/messages-reading.ts';
import { readResponses } from '../simulation/responses-reading.ts';
import { readStream } from '../simulation/stream-reading.ts';

const TEXT = Array.from({ length: 30 }, (_, index) => `w${index} à 満潮`).join(' ');
const MESSAGES = [{ role: 'user', content: 'Tides?' }];
const LEASE_MS = 300;

/**
 * Which store operation fails on the first replica. If it can't acquire the lease, no other replica knows the run at
 * all.
 */
type Failure = 'append' | 'acquire';

/** Two replicas. The first one can't store anything, and is lost once its client has read up to `until`. */
async function deployment(until: string, failure: Failure) {
  const provider = await startProvider({
    scripts: { '*': { parts: [{ text: TEXT }] } },
  });
  onTestFinished(() => provider.close());
  const transport = createUndiciTransport();
  onTestFinished(() => transport.close());
  const runs = new MemoryRuns();
  const tree = {
    upstreams: { provider: { base_url: provider.url } },
    checkpoint: { store: 'memory', lease_ms: LEASE_MS },
  };
  const [first, second] = [
    await startReplica(tree, { relay, transport, runs }),
    await startReplica(tree, { relay, transport, runs }),
  ];
  Object.assign(first.store, { [failure]: () => Promise.reject(new Error('the store is away')) });

  const bodies: string[] = [];
  const inner: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    bodies.push(String(init?.body));
    if (!String(input).startsWith(first.api)) return response;
    let had = '';
    const lossy = new TransformStream<Uint8Array, Uint8Array>({
      async transform(bytes, stream) {
        const text = Buffer.from(bytes).toString('latin1');
        const told = had.length;
        had += text;
        const end = had.indexOf(until);
        stream.enqueue(end < 0 ? bytes : bytes.subarray(0, Math.max(0, end - told)));
        if (end < 0) return;
        await first.store.close();
        stream.terminate();
      },
    });
    const { headers } = response;
    return new Response(response.body?.pipeThrough(lossy), { headers });
  };
  const client = resumable({ endpoints: [second.api], fetch: inner, backoffMs: 1, backoffMaxMs: 50 });
  return { first, second, provider, client, bodies };
}

const WIRES = [
  { path: '/v1/chat/completions', asking: { messages: MESSAGES }, read: readStream },
  { path: '/v1/messages', asking: { messages: MESSAGES, max_tokens: 4096 }, read: readMessages },
  { path: '/v1/responses', asking: { input: 'Tides?' }, read: readResponses },
];

const FAILURES: readonly Failure[] = ['append', 'acquire'];
const CASES = WIRES.flatMap((wire) => FAILURES.map((failure) => ({ ...wire, failure })));

test.each(CASES)('a run whose store fails to $failure continues at another replica: $path', async (wire) => {
  const { first, second, provider, client, bodies } = await deployment('w10', wire.failure);
  const body = JSON.stringify({ model: 'm', stream: true, ...wire.asking });
  const headers = { 'content-type': 'application/json', authorization: 'Bearer client-key' };
  const response = await client(first.api + wire.path, { method: 'POST', headers, body });
  const run = response.headers.get('holdfast-run-id');
  expect(wire.read(await response.text())).toMatchObject({ text: TEXT, done: true, violations: [] });

  expect(provider.requests).toHaveLength(2);
  const asked = bodies.map((each) => JSON.parse(each) as { request?: unknown });
  expect(asked.map(({ request }) => request)).toEqual([...[undefined, undefined], { path: wire.path, body }]);
  const state = await fetch(`${second.api}/holdfast/v1/runs/${run}`, { headers });
  expect(await state.json()).toMatchObject({ status: 'complete', text: TEXT, model: 'm', takeovers: 1 });
});
