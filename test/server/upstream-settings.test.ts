import type { IncomingHttpHeaders } from 'node:http';
import { describe, expect, it } from 'vitest';
import { relay } from '../../src/proxy/run/relay.ts';
import { chunkEvent, startProvider } from '../http-peer.ts';
import { startReplica } from '../replica.ts';

interface Asked {
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
}

const DEPLOYMENT = '/openai/deployments/gpt-4o';
const SAID = 'Kelp holds fast to rock.';

/** A provider whose first stream breaks off, and a replica in front of it with additional upstream settings. */
async function start(upstream: object) {
  const asked: Asked[] = [];
  const provider = await startProvider((request, response) => {
    const { url = '', headers } = request;
    asked.push({ url, headers });
    request.resume();
    if (!url.includes('/chat/completions')) {
      response.setHeader('set-cookie', 'session=1').end('{"data":[]}');
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const isFirst = asked.length === 1;
    response.write(chunkEvent({ role: 'assistant', content: isFirst ? 'Kelp holds fast ' : SAID }));
    if (isFirst) setTimeout(() => response.destroy(), 20);
    else response.end(`${chunkEvent({}, 'stop')}data: [DONE]\n\n`);
  });
  const { api } = await startReplica(
    {
      upstreams: { main: { base_url: provider + DEPLOYMENT, ...upstream } },
      recovery: { backoff_ms: 1 },
    },
    relay,
  );
  return { api, asked };
}

const SETTINGS = {
  headers: { 'Api-Key': 'the key of the operator', 'x-team': 'search' },
  query: { 'api-version': '2024-10-21' },
};
const CLIENT = { authorization: 'Bearer the key of a client', 'openai-project': 'p', 'x-team': 'client' };

describe('headers and a query that are configured for an upstream', () => {
  it('are part of every attempt, and no credential of the client is', async () => {
    const { api, asked } = await start(SETTINGS);
    const response = await fetch(`${api}/v1/chat/completions`, {
      method: 'POST',
      headers: { ...CLIENT, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'Tell me.' }] }),
    });
    expect(await response.text()).toContain('[DONE]');
    expect(asked.length).toBeGreaterThan(1);
    for (const { url, headers } of asked) {
      expect(url).toBe(`${DEPLOYMENT}/chat/completions?api-version=2024-10-21`);
      expect(headers).toMatchObject({ 'api-key': 'the key of the operator', 'x-team': 'search' });
      expect(headers).not.toHaveProperty('authorization');
      expect(headers).not.toHaveProperty('openai-project');
    }
  });

  it('are part of what is passed through; what else the client writes stays as it is written', async () => {
    const { api, asked } = await start(SETTINGS);
    const response = await fetch(`${api}/v1/files?after=a%2Bb%20c&api-version=1&flag&api%2Dversion=2`, {
      headers: CLIENT,
    });
    expect(response.headers.get('set-cookie')).toBeNull();
    expect(asked).toEqual([
      {
        url: `${DEPLOYMENT}/files?after=a%2Bb%20c&flag&api-version=2024-10-21`,
        headers: expect.objectContaining({ 'api-key': 'the key of the operator' }),
      },
    ]);
  });

  it('leave the credential of the client where they have none', async () => {
    const { api, asked } = await start({ headers: { 'x-team': 'search' } });
    const response = await fetch(`${api}/v1/files`, { headers: CLIENT });
    expect(response.headers.get('set-cookie')).toBe('session=1');
    expect(asked[0]).toMatchObject({
      url: `${DEPLOYMENT}/files`,
      headers: { authorization: 'Bearer the key of a client', 'x-team': 'search' },
    });
  });

  it('can be the token of a gateway, beside the key of the client', async () => {
    const { api, asked } = await start({ headers: { 'cf-aig-authorization': 'Bearer of the gateway' } });
    await fetch(`${api}/v1/files`, { headers: CLIENT });
    expect(asked[0]?.headers).toMatchObject({
      authorization: 'Bearer the key of a client',
      'cf-aig-authorization': 'Bearer of the gateway',
    });
  });

  it('do not come back in an error that repeats them', async () => {
    const provider = await startProvider(({ headers }, response) => {
      response.writeHead(401, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message: `no such key: ${headers['api-key']}` } }));
    });
    const { api } = await startReplica({ upstreams: { main: { base_url: `${provider}/v1`, ...SETTINGS } } });
    const response = await fetch(`${api}/v1/files`, { headers: CLIENT });
    expect(await response.text()).not.toContain('operator');
  });
});
