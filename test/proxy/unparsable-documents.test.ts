import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { WireName } from '../../src/checkpoint/journal.ts';
import { relay } from '../../src/proxy/run/relay.ts';
import { createUndiciTransport } from '../../src/proxy/upstream/undici-transport.ts';
import { WIRES } from '../../src/proxy/wires/registry.ts';
import { type Provider, startProvider } from '../provider/provider.ts';
import type { Plan } from '../provider/script.ts';
import { type Replica, startReplica } from '../replica.ts';

const GOOD = '{"city":"Brest","tides":2}';
const BROKEN = '{"city":"Brest","tides":';

/** The same question for JSON in the form of each wire. */
const REQUESTS: Readonly<Record<Exclude<WireName, 'completions'>, object>> = {
  chat_completions: {
    model: 'm',
    messages: [{ role: 'user', content: 'Tell me.' }],
    response_format: { type: 'json_object' },
  },
  messages: {
    model: 'm',
    max_tokens: 1000,
    messages: [{ role: 'user', content: 'Tell me.' }],
    output_config: { format: { type: 'json_schema', schema: {} } },
  },
  responses: {
    model: 'm',
    input: 'Tell me.',
    text: { format: { type: 'json_schema', name: 'tides', schema: {} } },
  },
};

async function replicaAt(base_url: string): Promise<Replica> {
  const transport = createUndiciTransport();
  const replica = await startReplica(
    {
      upstreams: { provider: { base_url } },
      routes: [{ model: '*', targets: [{ upstream: 'provider' }] }],
      recovery: { backoff_ms: 1, backoff_max_ms: 5, max_attempts: 2 },
    },
    { relay, transport },
  );
  onTestFinished(() => transport.close());
  return replica;
}

describe.each(Object.keys(REQUESTS) as (keyof typeof REQUESTS)[])('%s', (wire) => {
  let provider: Provider;
  let replica: Replica;
  beforeEach(async () => {
    provider = await startProvider();
    replica = await replicaAt(provider.url);
  });
  afterEach(() => provider.close());

  const ask = async (more: object = {}) => {
    const response = await fetch(`${replica.api}/v1${WIRES[wire].path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer client-key' },
      body: JSON.stringify({ ...REQUESTS[wire], ...more }),
    });
    const { status, headers } = response;
    return { status, headers, body: await response.text() };
  };
  const said = (text: string, more: Partial<Plan> = {}): Plan => ({ parts: [{ text }], ...more });
  const has = (text: string) => expect.stringContaining(JSON.stringify(text).slice(1, -1)) as string;

  test('a document that does not parse is asked for again', async () => {
    provider.next(said(BROKEN));
    provider.next(said(GOOD));
    const { status, headers, body } = await ask();
    expect({ status, body }).toEqual({ status: 200, body: has(GOOD) });
    expect(headers.get('holdfast-attempts')).toBe('2');
    expect(headers.has('holdfast-warning')).toBe(false);
    const [first, second] = provider.requests;
    expect(second?.body).toEqual(first?.body);
  });

  test('one that never parses is delivered as the provider gave it, and said to be so', async () => {
    provider.next(said('{"first":'));
    provider.next(said(BROKEN));
    const { status, headers, body } = await ask();
    expect({ status, body }).toEqual({ status: 200, body: has(BROKEN) });
    expect(headers.get('holdfast-warning')).toBe('unparsable_document');
    expect(headers.get('holdfast-attempts')).toBe('2');
    expect(provider.requests).toHaveLength(2);
  });

  test('what was paid for is not lost to a failure after it', async () => {
    provider.next(said(BROKEN));
    provider.next(said(GOOD), [{ kind: 'reset', at: { event: wire === 'chat_completions' ? 3 : 7 } }]);
    const { status, headers, body } = await ask();
    expect({ status, body }).toEqual({ status: 200, body: has(BROKEN) });
    expect(headers.get('holdfast-warning')).toBe('unparsable_document');
  });

  test('one that the limit has cut is not asked for again', async () => {
    provider.next(said(BROKEN, { finish: 'length' }));
    const { status, headers, body } = await ask();
    expect({ status, body }).toEqual({ status: 200, body: has(BROKEN) });
    expect(headers.has('holdfast-warning')).toBe(false);
    expect(provider.requests).toHaveLength(1);
  });

  test('one that was cut is still replayed', async () => {
    const at = { event: wire === 'chat_completions' ? 3 : 7 };
    provider.next(said(GOOD), [{ kind: 'reset', at }]);
    const { status, body } = await ask();
    expect({ status, body }).toEqual({ status: 200, body: has(GOOD) });
    expect(provider.requests).toHaveLength(2);
  });

  test('a text that is no JSON is none of it where none was asked for', async () => {
    provider.next(said(BROKEN));
    const {
      response_format: _,
      text: __,
      output_config: ___,
      ...plain
    } = REQUESTS[wire] as Record<string, unknown>;
    const response = await fetch(`${replica.api}/v1${WIRES[wire].path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer client-key' },
      body: JSON.stringify(plain),
    });
    expect(await response.text()).toEqual(has(BROKEN));
    expect(provider.requests).toHaveLength(1);
  });
});
