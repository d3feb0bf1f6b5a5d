import { describe, expect, test } from 'vitest';
import { ALLOWED, type Deployment, deploy, linesOf } from './fault-deployment.ts';

const CHAT = { model: 'm', messages: [{ role: 'user', content: 'When is the tide?' }] };

const post = ({ replica }: Deployment, path: string, body: object, headers: Record<string, string>) =>
  fetch(`${replica.api}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

test('the log names the attempt, the fault and its place', async () => {
  const deployment = await deploy();
  const headers = { 'holdfast-fault': 'cut=reset@40' };
  const response = await post(deployment, '/v1/chat/completions', { ...CHAT, stream: true }, headers);
  await response.text();
  expect(await linesOf(deployment)).toContainEqual(
    expect.objectContaining({
      msg: 'fault injected',
      level: 'warn',
      run: response.headers.get('holdfast-run-id'),
      attempt: 1,
      fault: 'reset',
      place: '40',
      after_characters: 40,
    }),
  );
});

test('the header stays here', async () => {
  const deployment = await deploy();
  const headers = { 'holdfast-fault': 'error=503, cut=reset@40' };
  await (await post(deployment, '/v1/chat/completions', { ...CHAT, stream: true }, headers)).text();
  expect(deployment.provider.requests.length).toBeGreaterThan(1);
  for (const request of deployment.provider.requests)
    expect(request.headers).not.toHaveProperty('holdfast-fault');
});

test('a fault that no attempt was made for is said to be missed', async () => {
  const deployment = await deploy();
  const headers = { 'holdfast-fault': 'stall=1ms@40, cut=reset@40' };
  await (await post(deployment, '/v1/chat/completions', { ...CHAT, stream: true }, headers)).text();
  expect((await linesOf(deployment)).filter(({ msg }) => msg === 'fault missed')).toEqual([
    expect.objectContaining({ attempt: 2, fault: 'reset', missed: 'the run made no such attempt' }),
  ]);
});

test('a request that comes back to its run has no attempts to break', async () => {
  const deployment = await deploy();
  const headers = { 'holdfast-fault': 'cut=reset@40', 'idempotency-key': 'one' };
  const body = { ...CHAT, stream: true };
  const runs = [];
  for (let time = 0; time < 2; time++) {
    const response = await post(deployment, '/v1/chat/completions', body, headers);
    runs.push(response.headers.get('holdfast-run-id'));
    await response.text();
  }
  expect(runs[1]).toBe(runs[0]);
  expect((await linesOf(deployment)).filter(({ msg }) => msg.startsWith('fault'))).toEqual([
    expect.objectContaining({ msg: 'fault injected' }),
    expect.objectContaining({ msg: 'fault missed', missed: 'the request came back to a run' }),
  ]);
});

describe('a header that would break nothing is an error', () => {
  const refused = async (deployment: Deployment, path: string, body: object, fault: string) => {
    const response = await post(deployment, path, body, { 'holdfast-fault': fault });
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    expect(deployment.provider.requests).toEqual([]);
    return { status: response.status, ...error };
  };

  test.each(['/v1/chat/completions', '/v1/messages', '/v1/responses', '/v1/embeddings'])(
    'where the configuration does not allow it, on %s',
    async (path) => {
      const error = await refused(await deploy({}), path, { ...CHAT, stream: true }, 'cut=reset@40');
      expect(error).toMatchObject({ status: 403, message: expect.stringContaining('faults.allow_header') });
    },
  );

  test.each([
    ['cut=fin@40', /^Invalid value for 'Holdfast-Fault': it must be cut=KIND@PLACE, with a KIND of reset/],
    ['stall=5', /stall=DURATION@PLACE/],
    ['error=404', /error=NAME@PLACE/],
    ['reset@40', /1 to 64 faults like cut=reset@40%, stall=5s, error=overloaded@tool/],
    ['cut=reset@40,', /1 to 64 faults/],
    ['constructor=1', /1 to 64 faults/],
    [Array(65).fill('cut=reset').join(','), /1 to 64 faults/],
  ])('%s', async (fault, message) => {
    const error = await refused(await deploy(), '/v1/chat/completions', { ...CHAT, stream: true }, fault);
    expect(error).toMatchObject({ status: 400, code: 'invalid_field', param: 'Holdfast-Fault' });
    expect(error.message).toMatch(message);
  });

  test('and where the answer passes through', async () => {
    const tree = {
      ...ALLOWED,
      routes: [{ model: 'm', targets: [{ upstream: 'provider' }], non_streaming: 'pass_through' }],
    };
    const error = await refused(await deploy(tree), '/v1/chat/completions', CHAT, 'cut=reset@40');
    expect(error).toMatchObject({ status: 400, code: 'fault_not_injected' });
  });

  test('but not where a request asks for no answer', async () => {
    const deployment = await deploy();
    const headers = { 'holdfast-fault': 'cut=reset@40' };
    expect((await fetch(`${deployment.replica.api}/v1/models`, { headers })).status).toBe(200);
  });
});

test('what the messages wire is refused with is worded as on it', async () => {
  const response = await post(await deploy({}), '/v1/messages', CHAT, { 'holdfast-fault': 'cut=reset' });
  expect(await response.json()).toMatchObject({ type: 'error', error: { message: expect.any(String) } });
});
