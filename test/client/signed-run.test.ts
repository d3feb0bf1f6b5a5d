import { createOpenAI } from '@ai-sdk/openai';
import { streamText } from 'ai';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { resumable, type SignedRunOptions, signedRun } from '../../src/client/index.ts';
import { Deployment, modelOf } from '../e2e/deployment.ts';
import { streamRequest } from '../e2e/raw-client.ts';
import { CREDENTIAL, fetchRun } from '../e2e/talk.ts';
import { saying } from './answers.ts';
import { Fleet, refuse } from './fleet.ts';

const TEXT = Array.from({ length: 100 }, (_, index) => `w${index}`).join(' ');

let deployment: Deployment;
beforeAll(async () => {
  deployment = await Deployment.start();
});
afterAll(() => deployment.close());

const requestFor = (question: string): RequestInit => ({
  method: 'POST',
  headers: { ...CREDENTIAL, 'content-type': 'application/json' },
  body: JSON.stringify(streamRequest(modelOf('vllm'), question)),
});

/** Starts an answer, and returns it with its run. */
async function begin(question: string, options: Partial<SignedRunOptions> = {}) {
  deployment.plan(question, { parts: [{ text: TEXT }], delay_ms: 20, prefill: 'vllm' });
  const { url } = deployment.holdfast;
  const run = signedRun({ publicUrl: `${new URL(url).origin}/`, ...options });
  const answer = await run.fetch(`${url}/chat/completions`, requestFor(question));
  return { answer, ...(await run.opened) };
}

const statusOf = async (run: string | undefined): Promise<unknown> =>
  ((await (await fetchRun(deployment.holdfast, String(run))).json()) as { status: unknown }).status;

describe('a signed run', () => {
  test('has its id, and a URL that stops it without a credential', async () => {
    const { answer, id, headers } = await begin('stopped?');
    expect(id).toBe(answer.headers.get('holdfast-run-id'));
    const { 'holdfast-stop-url': url = '' } = headers;
    expect(url).not.toContain(CREDENTIAL.authorization.slice(7));
    expect(await (await fetch(url, { method: 'POST' })).json()).toMatchObject({ id, status: 'cancelled' });
    expect(await answer.text()).toContain('run_cancelled');
  });

  test('continues when it is left', async () => {
    const { answer, id } = await begin('left?');
    await answer.body?.cancel();
    await deployment.holdfast.logged(({ msg, run }) => msg === 'run ended' && run === id);
    expect(await statusOf(id)).toBe('complete');
  });

  test('can be stopped for as long as it says', async () => {
    const { answer, headers } = await begin('how long?', {
      ttlS: 60,
      publicUrl: 'https://llm.example.com/holdfast',
    });
    await answer.body?.cancel();
    const { 'holdfast-stop-url': url = '' } = headers;
    expect(url).toMatch(/^https:\/\/llm\.example\.com\/holdfast\/holdfast\/v1\/runs\/run_/);
    const [, expires_s] = /signature=(\d+)\./.exec(url) ?? [];
    const left_s = Number(expires_s) - Date.now() / 1000;
    expect(left_s).toBeGreaterThan(0);
    expect(left_s).toBeLessThanOrEqual(61);
  });

  test('is signed at the replica that has answered', async () => {
    const gone = 'http://127.0.0.1:9';
    const { url } = deployment.holdfast;
    deployment.plan('elsewhere?', { parts: [{ text: 'w' }] });
    const fetch = resumable({ endpoints: [gone, url], cancelOnAbort: false, backoffMs: 1 });
    const run = signedRun({ publicUrl: gone, fetch });
    await (await run.fetch(`${gone}/v1/chat/completions`, requestFor('elsewhere?'))).text();
    expect((await run.opened).headers).toHaveProperty('holdfast-stop-url');
  });

  test('is none where the request fails, and the caller reads why', async () => {
    const run = signedRun({
      publicUrl: 'http://127.0.0.1:9',
      fetch: () => Promise.reject(new TypeError('no route')),
    });
    await expect(run.fetch('http://127.0.0.1:9/v1/chat/completions')).rejects.toThrow('no route');
    expect(await run.opened).toEqual({ id: undefined, headers: {} });
  });

  test('is none where the SDK fails before it makes a request, and the stream of the SDK says why', async () => {
    const limit = new AbortController();
    const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValueOnce(limit.signal);
    const run = signedRun({ publicUrl: 'http://127.0.0.1:9' });
    expect(timeout).toHaveBeenCalledExactlyOnceWith(10_000);
    timeout.mockRestore();
    const { chat } = createOpenAI({ baseURL: 'http://127.0.0.1:9/v1', apiKey: 'key', fetch: run.fetch });
    const { stream } = streamText({ model: chat('m'), messages: [], onError: () => {} });
    limit.abort();
    expect(await run.opened).toEqual({ id: undefined, headers: {} });
    const parts: unknown[] = [];
    for await (const part of stream) parts.push(part);
    expect(parts).toContainEqual({
      type: 'error',
      error: expect.objectContaining({ name: 'AI_InvalidPromptError' }),
    });
  });

  test('is none once its owner waits no longer, and a request that comes later is just answered', async () => {
    const owner = new AbortController();
    const requests: string[] = [];
    const fetch = async (input: unknown) => {
      requests.push(String(input));
      return new Response('late', { headers: { 'holdfast-run-id': 'run_1' } });
    };
    const run = signedRun({ publicUrl: 'http://127.0.0.1:9', signal: owner.signal, fetch });
    owner.abort();
    expect(await run.opened).toEqual({ id: undefined, headers: {} });
    const url = 'http://127.0.0.1:9/v1/chat/completions';
    expect(await (await run.fetch(url)).text()).toBe('late');
    expect(requests).toEqual([url]);
    const { opened } = signedRun({ publicUrl: 'http://127.0.0.1:9', signal: owner.signal, fetch });
    expect(await opened).toEqual({ id: undefined, headers: {} });
  });

  test('is waited for once the SDK has made its request, even if the signal aborts then', async () => {
    const owner = new AbortController();
    const answered = Promise.withResolvers<Response>();
    const run = signedRun({
      publicUrl: 'http://127.0.0.1:9',
      signal: owner.signal,
      fetch: () => answered.promise,
    });
    const response = run.fetch('http://127.0.0.1:9/v1/chat/completions');
    owner.abort();
    answered.resolve(new Response('', { headers: { 'holdfast-run-id': 'run_1' } }));
    await response;
    expect((await run.opened).id).toBe('run_1');
  });

  test('has no URL where Holdfast does not sign', async () => {
    const fleet = await Fleet.start(saying('w'));
    const run = signedRun({ publicUrl: fleet.base });
    fleet.script(
      ({ response }) => {
        response
          .writeHead(200, { 'content-type': 'text/event-stream', 'holdfast-run-id': 'run_1' })
          .end('data: [DONE]\n\n');
      },
      refuse(404, 'run_not_found'),
    );
    await (await run.fetch(fleet.chatUrl, requestFor('unsigned?'))).text();
    expect(await run.opened).toEqual({ id: 'run_1', headers: {} });
  });

  test.each([
    [{ publicUrl: '/holdfast' }, 'publicUrl'],
    [{ publicUrl: 'https://llm.example.com', ttlS: 0 }, 'ttlS'],
    [{ publicUrl: 'https://llm.example.com', ttlS: 86_401 }, 'ttlS'],
  ])('refuses %o', (options, name) => {
    expect(() => signedRun(options)).toThrow(new RegExp(`^${name} must be`));
  });
});
