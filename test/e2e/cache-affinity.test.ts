import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Plan } from '../provider/script.ts';
import { readingOf } from '../simulation/simulate.ts';
import { RouteDeployment } from './route-deployment.ts';
import { CREDENTIAL } from './talk.ts';

const TEXT = 'What holds fast to the rock is there when the tide is out again.';
const AFFINITY_MS = 1500;
const WORKS: Plan = { parts: [{ text: TEXT }] };
const FAILS: Plan = {
  ...WORKS,
  faults: Array.from({ length: 8 }, () => ({ kind: 'status', status: 503 }) as const),
};

let deployment: RouteDeployment;
beforeAll(async () => {
  deployment = await RouteDeployment.start(
    {
      'claude-*': { upstream: { dialect: 'anthropic' }, settings: { cache_affinity_ms: AFFINITY_MS } },
      'other-*': { upstream: { dialect: 'anthropic' }, settings: { cache_affinity_ms: 0 } },
    },
    { breaker: { failures: 100 }, recovery: { same_target_retries: 0, backoff_ms: 10 } },
  );
});
afterAll(() => deployment.close());

interface Turn {
  readonly model?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Asks within a conversation that is marked for the prompt cache. Returns the name of the upstream that answers. */
async function ask(question: string, { model = 'claude-opus-5', headers = {} }: Turn = {}): Promise<string> {
  const response = await fetch(`${deployment.holdfast.url}/messages`, {
    method: 'POST',
    headers: { ...CREDENTIAL, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({
      model,
      max_tokens: 1000,
      stream: true,
      messages: [
        { role: 'user', content: [{ type: 'text', text: question, cache_control: { type: 'ephemeral' } }] },
      ],
    }),
  });
  const stream = readingOf(await response.text(), { wire: 'messages' });
  expect(stream).toMatchObject({ text: TEXT, done: true, violations: [] });
  return response.headers.get('holdfast-upstream') ?? '';
}

/**
 * Moves a conversation to the second target: the first one answers, lets its cache expire, and then fails once, so that
 * the second one answers.
 */
async function moved(question: string, turn: Turn): Promise<void> {
  deployment.plan(question, { first: WORKS, second: WORKS });
  expect(await ask(question, turn)).toMatch(/^first_/);
  await sleep(AFFINITY_MS);
  deployment.plan(question, { first: FAILS, second: WORKS });
  expect(await ask(question, turn)).toBe('second');
  deployment.plan(question, { first: WORKS, second: WORKS });
}

describe('a conversation that has moved to the second target', () => {
  test.each([{ 'x-claude-code-session-id': 'session of Claude Code' }, { 'holdfast-thread': 'a thread' }])(
    'goes on there while only that has it in its prompt cache: %o',
    async (headers) => {
      const question = JSON.stringify(headers);
      await moved(question, { headers });
      expect(await ask(question, { headers })).toBe('second');
      expect(deployment.requests(question).second.at(-1)?.cached).toMatchObject({ written: 0 });
    },
  );

  test('returns to the first one when it has not been heard of for longer', async () => {
    const headers = { 'holdfast-thread': 'pauses' };
    await moved('pauses', { headers });
    await sleep(AFFINITY_MS);
    expect(await ask('pauses', { headers })).toMatch(/^first_/);
  });

  test('returns to the first one at once where that has it in its cache still', async () => {
    const headers = { 'holdfast-thread': 'a moment' };
    deployment.plan('a moment', { first: WORKS, second: WORKS });
    await ask('a moment', { headers });
    deployment.plan('a moment', { first: FAILS, second: WORKS });
    expect(await ask('a moment', { headers })).toBe('second');
    deployment.plan('a moment', { first: WORKS, second: WORKS });
    expect(await ask('a moment', { headers })).toMatch(/^first_/);
  });

  test.each<[string, Turn]>([
    ['it belongs to no thread', {}],
    ['the route does not want it', { model: 'other-1', headers: { 'holdfast-thread': 'unwanted' } }],
  ])('returns to the first one where %s', async (question, turn) => {
    await moved(question, turn);
    expect(await ask(question, turn)).toMatch(/^first_/);
  });

  test('takes no other conversation with it', async () => {
    await moved('one of two', { headers: { 'holdfast-thread': 'one' } });
    expect(await ask('one of two', { headers: { 'holdfast-thread': 'another' } })).toMatch(/^first_/);
  });

  test('continues at the first one when the second fails', async () => {
    const headers = { 'holdfast-thread': 'back' };
    await moved('back', { headers });
    deployment.plan('back', { first: WORKS, second: FAILS });
    expect(await ask('back', { headers })).toMatch(/^first_/);
  });
});
