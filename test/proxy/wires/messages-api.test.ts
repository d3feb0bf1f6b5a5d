import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Provider, startProvider } from '../../provider/provider.ts';
import { NO_UPSTREAM_URL, type Replica, startReplica, upstreamsAt } from '../../replica.ts';

const REQUEST = {
  model: 'claude',
  max_tokens: 100,
  messages: [{ role: 'user', content: 'the secret prompt' }],
};

const PASSED_THROUGH = [{ model: '*', targets: [{ upstream: 'provider' }], non_streaming: 'pass_through' }];

const post = (replica: Replica, path: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(`${replica.api}/v1/messages${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

async function refusal(response: Response) {
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  return { status: response.status, ...((await response.json()) as object) };
}

describe('a request that cannot be served is refused in the shape of the wire', () => {
  test.each<[string, unknown, number, string, string]>([
    ['malformed JSON', '{"model": "secret', 400, 'invalid_request_error', 'invalid_json'],
    [
      'no model',
      { ...REQUEST, stream: true, model: undefined },
      400,
      'invalid_request_error',
      'missing_field',
    ],
    [
      'no messages',
      { ...REQUEST, stream: true, messages: [] },
      400,
      'invalid_request_error',
      'invalid_field',
    ],
    [
      'a model without a route',
      { ...REQUEST, stream: true, model: 'other' },
      404,
      'not_found_error',
      'model_not_found',
    ],
    ['the same without a stream', { ...REQUEST, model: 'other' }, 404, 'not_found_error', 'model_not_found'],
    [
      'a body over the limit',
      { ...REQUEST, system: ' '.repeat(4096) },
      413,
      'invalid_request_error',
      'body_too_large',
    ],
  ])('%s', async (_, body, status, type, code) => {
    const routes = [{ model: 'claude', targets: [{ upstream: 'provider' }] }];
    const replica = await startReplica({
      ...upstreamsAt(NO_UPSTREAM_URL),
      routes,
      limits: { body_bytes: 2048 },
    });
    expect(await refusal(await post(replica, '?beta=true', body))).toEqual({
      status,
      type: 'error',
      error: { type, code, message: expect.any(String) as string },
    });
  });

  test.each(['', '/count_tokens'])('an upstream that cannot be reached: %j', async (path) => {
    const replica = await startReplica({ ...upstreamsAt(NO_UPSTREAM_URL), routes: PASSED_THROUGH });
    expect(await refusal(await post(replica, path, REQUEST))).toMatchObject({
      status: 502,
      type: 'error',
      error: { type: 'api_error', code: 'upstream_unreachable' },
    });
  });

  test('other paths keep the shape of theirs', async () => {
    const replica = await startReplica(upstreamsAt(NO_UPSTREAM_URL));
    const answer = await refusal(await fetch(`${replica.api}/v1/messagesque`));
    expect(answer).toMatchObject({ error: { type: 'upstream_error', param: null } });
    expect(answer).not.toHaveProperty('type');
  });
});

describe('the key of an upstream', () => {
  let provider: Provider;
  beforeEach(async () => {
    provider = await startProvider({ scripts: { '*': { parts: [{ text: 'Kelp.' }] } } });
  });
  afterEach(() => provider.close());

  const sent = async (path: string, api_key?: string) => {
    const upstream = { base_url: provider.url, ...(api_key !== undefined && { api_key }) };
    const replica = await startReplica({ upstreams: { provider: upstream }, routes: PASSED_THROUGH });
    const credentials = {
      'x-api-key': 'client-key',
      'anthropic-version': '2023-06-01',
      'anthropic-beta': 'one',
    };
    await (await post(replica, path, REQUEST, credentials)).text();
    return provider.requests.at(-1)?.headers;
  };

  test.each(['', '/count_tokens'])(
    'takes the place of the client’s where the wire has it: %j',
    async (path) => {
      const headers = await sent(path, 'configured-key');
      expect(headers).toMatchObject({
        'x-api-key': 'configured-key',
        'anthropic-version': '2023-06-01',
        'anthropic-beta': 'one',
      });
      expect(headers).not.toHaveProperty('authorization');
    },
  );

  test('is the client’s where there is none', async () => {
    expect(await sent('')).toMatchObject({ 'x-api-key': 'client-key' });
  });
});
