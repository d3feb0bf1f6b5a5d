import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { WireName } from '../../src/checkpoint/journal.ts';
import type { Fault } from '../provider/fault.ts';
import type { RecordedRequest } from '../provider/recorded-request.ts';
import type { Plan } from '../provider/script.ts';
import { PROVIDER_WIRES } from '../provider/wires/registry.ts';
import { messagesRequestOf } from '../simulation/messages-request.ts';
import { responsesRequestOf } from '../simulation/responses-request.ts';
import { readingOf } from '../simulation/simulate.ts';
import { RouteDeployment } from './route-deployment.ts';
import { CREDENTIAL } from './talk.ts';

const TEXT = 'The tide comes in twice a day, and what holds fast to the rock is there when it is out again.';
const WHOLE = '{"city":"Paris","days":7,"list":[1,2,3,4,5,6,7,8,9]}';
/** Longer than any test here takes. */
const FOR_EVER: Fault = { kind: 'silence', at: { event: 0 } };
const stalls = (event: number, for_ms?: number): Fault => ({
  kind: 'silence',
  at: { event },
  ...(for_ms !== undefined && { for_ms }),
});
const says = (...faults: readonly Fault[]): Plan => ({ parts: [{ text: TEXT }], faults });

const isClosed = ({ aborted_at_ms }: RecordedRequest) => aborted_at_ms !== undefined;

let deployment: RouteDeployment;
beforeAll(async () => {
  deployment = await RouteDeployment.start({
    '*': {
      upstream: { dialect: 'openai' },
      settings: { hedge: { after_ms: 150, stall_ms: 150, max_share: 1 } },
    },
  });
});
afterAll(() => deployment.close());

async function ask(
  question: string,
  wire: WireName,
  more: object = {},
  signal?: AbortSignal,
): Promise<Response> {
  const request = { model: 'model', messages: [{ role: 'user', content: question }], stream: true } as const;
  const bodies: Partial<Record<WireName, object>> = {
    messages: messagesRequestOf(request),
    responses: responsesRequestOf(request),
  };
  return fetch(`${deployment.holdfast.url}${PROVIDER_WIRES[wire].path}`, {
    method: 'POST',
    headers: { ...CREDENTIAL, 'content-type': 'application/json' },
    body: JSON.stringify({ ...(bodies[wire] ?? request), ...more }),
    ...(signal && { signal }),
  });
}

async function counted(outcome: string): Promise<number> {
  return (await deployment.holdfast.metrics()).get(`holdfast_hedges_total{outcome="${outcome}"}`) ?? 0;
}

describe.each(['chat_completions', 'messages', 'responses'] as const)('on %s', (wire) => {
  test('the second target answers where the first is silent, which is let go at once', async () => {
    const question = `${wire}, silent`;
    deployment.plan(question, { first: says(FOR_EVER), second: says() });
    const won = await counted('won');
    const response = await ask(question, wire);
    const stream = readingOf(await response.text(), { wire });

    expect(stream).toMatchObject({ text: TEXT, done: true, violations: [] });
    expect(response.headers.get('holdfast-upstream')).toBe('second');
    const { first, second } = deployment.requests(question);
    expect([first.length, second.length]).toEqual([1, 1]);
    await vi.waitFor(() => expect(first.every(isClosed)).toBe(true));
    expect(await counted('won')).toBe(won + 1);
  });

  test('the second target continues an answer that stalls', async () => {
    const question = `${wire}, stalls`;
    deployment.plan(question, { first: says(stalls(8)), second: says() });
    const stream = readingOf(await (await ask(question, wire)).text(), { wire });

    expect(stream).toMatchObject({ text: TEXT, done: true, violations: [] });
    const { first, second } = deployment.requests(question);
    expect([first.length, second.length]).toEqual([1, 1]);
    await vi.waitFor(() => expect(first.every(isClosed)).toBe(true));
  });

  test('the first target answers where it speaks first, and the second is let go', async () => {
    const question = `${wire}, late`;
    deployment.plan(question, { first: says(stalls(0, 400)), second: says(FOR_EVER) });
    const lost = await counted('lost');
    const hedged = await (await ask(question, wire)).text();

    expect(readingOf(hedged, { wire })).toMatchObject({ text: TEXT, done: true, violations: [] });
    const { second } = deployment.requests(question);
    expect(second).toHaveLength(1);
    await vi.waitFor(() => expect(second.every(isClosed)).toBe(true));
    expect(await counted('lost')).toBe(lost + 1);
  });

  test('a call that stalls is made by the second target, and once', async () => {
    const question = `${wire}, call`;
    const parts = [{ text: TEXT }, { tool: { id: 'call_1', name: 'forecast', arguments: WHOLE } }];
    const call = { id: 'call_1', name: 'forecast', arguments: WHOLE };
    deployment.plan(question, { first: { parts, faults: [stalls(30)] }, second: { parts } });
    const stream = readingOf(await (await ask(question, wire)).text(), { wire });

    expect(stream).toMatchObject({ text: TEXT, toolCalls: [call], done: true, violations: [] });
    const { first, second } = deployment.requests(question);
    expect([first.length, second.length]).toEqual([1, 1]);
  });
});

test("OpenAI's own client notices nothing of it", async () => {
  const question = 'a client of OpenAI';
  deployment.plan(question, { first: says(stalls(8)), second: says() });
  const client = new OpenAI({
    baseURL: deployment.holdfast.url,
    apiKey: 'client-key',
    maxRetries: 0,
  });
  const messages = [{ role: 'user', content: question }] as const;
  let text = '';
  const stream = await client.chat.completions.create({
    model: 'model',
    messages: [...messages],
    stream: true,
  });
  for await (const { choices } of stream) text += choices[0]?.delta.content ?? '';

  expect(text).toBe(TEXT);
});

test('a document is that of the second target where the first is silent', async () => {
  const question = 'a document';
  deployment.plan(question, { first: says(FOR_EVER), second: says() });
  const response = await ask(question, 'chat_completions', { stream: false });
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };

  expect(choices[0]?.message.content).toBe(TEXT);
});

test('a client that leaves ends both', async () => {
  const question = 'a client that leaves';
  deployment.plan(question, { first: says(FOR_EVER), second: says(FOR_EVER) });
  const gone = new AbortController();
  const response = ask(question, 'chat_completions', {}, gone.signal);
  await vi.waitFor(() => expect(deployment.requests(question).second).toHaveLength(1));
  gone.abort();
  await expect(response).rejects.toThrow();

  const { first, second } = deployment.requests(question);
  await vi.waitFor(() => expect([...first, ...second].every(isClosed)).toBe(true));
});
