import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import OpenAI, { AzureOpenAI } from 'openai';
import { describe, expect, it } from 'vitest';
import { relay } from '../../src/proxy/run/relay.ts';
import { chunkEvent, startProvider } from '../http-peer.ts';
import { SAID_TEXT, SlowCall } from '../proxy/wires/slow-call.ts';
import { startReplica } from '../replica.ts';

interface Asked {
  readonly url: string;
  readonly key: unknown;
  readonly model: unknown;
}

const AT_AZURE = '/openai/deployments/gpt-4o';
const QUESTION = { messages: [{ role: 'user' as const, content: 'Tell me.' }] };
const BEGUN = 'Kelp holds fast ';
const WHOLE = `${BEGUN}to rock.`;

/** A provider whose first stream breaks off, an Azure deployment for one model, and a replica in front of both. */
async function start() {
  const asked: Asked[] = [];
  const provider = await startProvider(async (request, response) => {
    const { url = '', headers } = request;
    const body = await text(request);
    asked.push({ url, key: headers['api-key'], model: body === '' ? undefined : JSON.parse(body).model });
    if (/chat\/completions|responses/.test(url))
      response.writeHead(200, { 'content-type': 'text/event-stream' });
    if (url.includes('/responses')) {
      for (const part of new SlowCall(0, 0).responses) response.write(part);
      response.end();
    } else if (!url.includes('/chat/completions')) {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ object: 'list', data: [{ embedding: [1], index: 0 }] }));
    } else if (asked.length === 1) {
      response.write(chunkEvent({ role: 'assistant', content: BEGUN }));
      setTimeout(() => response.destroy(), 20);
    } else {
      response.write(chunkEvent({ role: 'assistant', content: WHOLE }));
      response.end(`${chunkEvent({}, 'stop')}data: [DONE]\n\n`);
    }
  });
  const azure = { base_url: provider + AT_AZURE, query: { 'api-version': '2024-10-21' } };
  const { api } = await startReplica(
    {
      upstreams: { others: { base_url: `${provider}/v1` }, azure },
      routes: [
        { model: 'gpt-4o', targets: [{ upstream: 'azure' }] },
        { model: '*', targets: [{ upstream: 'others' }] },
      ],
      recovery: { backoff_ms: 1 },
    },
    relay,
  );
  const client = new AzureOpenAI({ endpoint: api, apiVersion: '2025-01-01', apiKey: 'key', maxRetries: 0 });
  return { api, client, asked };
}

describe("the SDK of OpenAI for Azure, with Holdfast's address as its endpoint", () => {
  it('has a stream recovered', async () => {
    const { client, asked } = await start();
    const stream = await client.chat.completions.create({ model: 'gpt-4o', stream: true, ...QUESTION });
    let said = '';
    for await (const { choices } of stream) said += choices[0]?.delta.content ?? '';
    expect(said).toBe(WHOLE);
    expect(asked.length).toBeGreaterThan(1);
    for (const each of asked) {
      expect(each).toEqual({
        url: `${AT_AZURE}/chat/completions?api-version=2024-10-21`,
        key: 'key',
        model: 'gpt-4o',
      });
    }
  });

  it('has a document recovered, if the version is a setting of the upstream', async () => {
    const { client, asked } = await start();
    const { choices } = await client.chat.completions.create({ model: 'gpt-4o', ...QUESTION });
    expect(choices[0]?.message.content).toBe(WHOLE);
    expect(asked.length).toBeGreaterThan(1);
  });

  it('reaches an upstream that is not Azure under its own paths', async () => {
    const { client, asked } = await start();
    const stream = await client.responses.create({ model: 'other', input: 'Tell me.', stream: true });
    let said = '';
    for await (const event of stream) if (event.type === 'response.output_text.delta') said += event.delta;
    expect(said).toBe(SAID_TEXT);
    expect(asked).toEqual([{ url: '/v1/responses', key: 'key', model: 'other' }]);
  });

  it('has what is passed through sent to the target of its deployment', async () => {
    const { client, asked } = await start();
    await client.embeddings.create({ model: 'gpt-4o', input: 'kelp' });
    await client.embeddings.create({ model: 'other', input: 'kelp' });
    await client.models.list();
    expect(asked.map(({ url }) => url)).toEqual([
      `${AT_AZURE}/embeddings?api-version=2024-10-21`,
      '/v1/embeddings?api-version=2025-01-01',
      '/v1/models?api-version=2025-01-01',
    ]);
  });

  it('may be the plain one, with the v1 API', async () => {
    const { api, asked } = await start();
    const client = new OpenAI({ baseURL: `${api}/openai/v1`, apiKey: 'key', maxRetries: 0 });
    await client.models.list();
    expect(asked.map(({ url }) => url)).toEqual(['/v1/models']);
  });
});

describe('a request for a deployment', () => {
  const ask = (api: string, deployment: string, fields: object) =>
    fetch(`${api}/openai/deployments/${deployment}/chat/completions?api-version=1`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ stream: true, ...QUESTION, ...fields }),
    });

  it.each([
    ['names no model', {}],
    ['names another model, which Azure would not look at', { model: 'another' }],
  ])('is one for the model of that name if its body %s', async (_, fields) => {
    const { api, asked } = await start();
    expect(await (await ask(api, 'gpt-4o', fields)).text()).toContain('[DONE]');
    expect(asked[0]?.model).toBe('gpt-4o');
  });

  it.each([
    ['with what a path has to escape', 'org%2Fmodel%20x', 'org/model x'],
    ['that is no text', '%ff', '%ff'],
    ['that could climb', '..%2f..', '../..'],
  ])('%s is sent as the model, and never as a path', async (_, written, model) => {
    const { api, asked } = await start();
    await (await ask(api, written, {})).text();
    expect(asked[0]).toMatchObject({ url: '/v1/chat/completions', model });
  });

  it.each(['/openai/../v1/models', '/openai/v1/..;/models', '/openai', '/openaiv1/models'])(
    'is not made of %s',
    async (path) => {
      const { api, asked } = await start();
      const { hostname, port } = new URL(api);
      const sent = get({ hostname, port, path });
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      response.resume();
      expect(response.statusCode).toBe(404);
      expect(asked).toEqual([]);
    },
  );
});
