import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Fault } from '../provider/fault.ts';
import type { RecordedRequest } from '../provider/recorded-request.ts';
import type { Part } from '../provider/script.ts';
import { API_KEY } from './clients/chat-client.ts';
import { Deployment, modelOf } from './deployment.ts';
import { afterDeltas } from './message-situations.ts';
import { callTo, TIDES } from './situations.ts';

/*
 * The provider bills cached prompt tokens at a tenth of the price: a cut must not cost the client the cache of its
 * conversation.
 */

const THOUGHTS = { reasoning: 'They ask about the sea, so it is about kelp again.' };
const TEXT = {
  text: 'The tide comes in twice a day, and what holds fast to the rock is there when it is out again.',
};
const CALL = { tool: callTo('call_brest', 'Brest') };
const PARTS: readonly Part[] = [THOUGHTS, TEXT, CALL];

const LONG = 'Kelp holds fast to the rock. '.repeat(200);
const marked = { cache_control: { type: 'ephemeral' as const } };

const MODELS = { 'continues a prefix': 'claude-sonnet-4-5', 'continues none': 'h1' } as const;

const THINKING: Readonly<Record<string, Anthropic.ThinkingConfigParam | undefined>> = {
  'is not mentioned': undefined,
  'is off': { type: 'disabled' },
  'is adaptive': { type: 'adaptive' },
  'has a budget': { type: 'enabled', budget_tokens: 2048 },
};

const inText: Fault = { kind: 'reset', at: afterDeltas(PARTS, 'text_delta', 9) };
const CUTS: Readonly<Record<string, readonly Fault[]>> = {
  'before the first event': [{ kind: 'reset', at: { before_headers: true } }],
  'in its thoughts': [{ kind: 'reset', at: afterDeltas(PARTS, 'thinking_delta', 3) }],
  'in its text': [inText],
  'in its text, and in the rest of it': [inText, { kind: 'reset', at: afterDeltas([TEXT], 'text_delta', 5) }],
  'in a call': [{ kind: 'clean_eof', at: afterDeltas(PARTS, 'input_json_delta', 2) }],
  'by the provider that is overloaded': [
    { kind: 'error_anthropic', at: afterDeltas(PARTS, 'text_delta', 3) },
  ],
};

const MAX_ATTEMPTS = 3;

let deployment: Deployment;
beforeAll(async () => {
  deployment = await Deployment.start({ recovery: { max_attempts: MAX_ATTEMPTS } });
});
afterAll(() => deployment.close());

async function ask(question: string, model: string, thinking?: Anthropic.ThinkingConfigParam) {
  const client = new Anthropic({
    baseURL: deployment.holdfast.url.replace(/\/v1$/, ''),
    apiKey: API_KEY,
    maxRetries: 0,
    defaultHeaders: { 'holdfast-thread': question },
  });
  const message = await client.messages
    .stream({
      model: modelOf(model),
      max_tokens: 4096,
      system: [{ type: 'text', text: LONG, ...marked }],
      tools: [{ name: TIDES.name, input_schema: { ...TIDES.parameters, type: 'object' } }],
      messages: [
        { role: 'user', content: question },
        { role: 'assistant', content: LONG },
        { role: 'user', content: [{ type: 'text', text: LONG, ...marked }] },
      ],
      ...(thinking && { thinking }),
    })
    .finalMessage();
  return message.content.filter(({ type }) => type !== 'thinking');
}

/** The tokens that this request couldn't read from the cache, of those that the first one left there. */
const lost = (first: RecordedRequest, { cached }: RecordedRequest): number => {
  const { read, written } = first.cached ?? { read: 0, written: 0 };
  return read + written - (cached?.read ?? 0);
};

const CASES = Object.entries(MODELS).flatMap(([which, model]) =>
  Object.entries(THINKING).flatMap(([how, thinking]) =>
    Object.entries(CUTS).map(([where, faults]) => ({ which, model, how, thinking, where, faults })),
  ),
);

describe('after a cut, the provider reads the conversation from its prompt cache', () => {
  test.each(CASES)('a model that $which, whose thinking $how, cut $where', async (situation) => {
    const { which, model, how, thinking, where, faults } = situation;
    const question = `${which} ${how} ${where}`;
    deployment.plan(question, { parts: PARTS, faults });
    expect(await ask(question, model, thinking)).toEqual([
      { type: 'text', text: TEXT.text },
      expect.objectContaining({ type: 'tool_use', id: CALL.tool.id, input: JSON.parse(CALL.tool.arguments) }),
    ]);
    const [first, ...others] = deployment.requests(question);
    expect(others.length).toBeGreaterThanOrEqual(faults.length);
    expect(first?.cached?.written).toBeGreaterThan(1_000);
    expect(first && others.map((request) => lost(first, request))).toEqual(others.map(() => 0));
  });
});

test('thinking is turned off for the rest where thinking again would cost more than the cache', async () => {
  const question = 'thoughts';
  const parts = [{ reasoning: LONG }, TEXT];
  deployment.plan(question, {
    parts,
    faults: [{ kind: 'reset', at: afterDeltas(parts, 'text_delta', 9) }],
  });
  expect(await ask(question, 'h1', { type: 'adaptive' })).toEqual([{ type: 'text', text: TEXT.text }]);
  expect(deployment.requests(question)[1]?.body).toMatchObject({ thinking: { type: 'disabled' } });
});

test('the rest is asked for without thinking once a provider has refused it with', async () => {
  const question = 'refused';
  const status = {
    kind: 'status',
    status: 400,
    body: { type: 'error', error: { type: 'invalid_request_error', message: 'thinking: no' } },
  } as const;
  deployment.plan(question, { parts: [TEXT], faults: [{ ...inText, at: { event: 9 } }, status] });
  expect(await ask(question, 'h1', { type: 'adaptive' })).toEqual([{ type: 'text', text: TEXT.text }]);
  const [, second, third] = deployment.requests(question);
  expect(second?.body).toMatchObject({ thinking: { type: 'adaptive' } });
  expect(third?.body).toMatchObject({ thinking: { type: 'disabled' } });
});

test('a notice about an answer that was given up leaves the conversation in the cache', async () => {
  const question = 'given up';
  const isDown: Fault = { kind: 'status', status: 503 };
  deployment.plan(question, {
    parts: PARTS,
    faults: [inText, ...Array<Fault>(MAX_ATTEMPTS - 1).fill(isDown)],
  });
  await expect(ask(question, 'h1')).rejects.toThrow();
  await ask(question, 'h1');
  const requests = deployment.requests(question);
  const [first, told] = [requests[0], requests.at(-1)];
  expect(requests).toHaveLength(MAX_ATTEMPTS + 1);
  expect(JSON.stringify(told?.body)).toContain('last_partial_recovery');
  expect(first && told && lost(first, told)).toBe(0);
});
