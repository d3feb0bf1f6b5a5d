import { describe, expect, test } from 'vitest';
import {
  blockStart,
  blockStop,
  end,
  eventsOf,
  start,
  stop,
  text,
  textBlock,
  textStart,
} from './messages-raw.ts';
import { CUT, type RawAnswer, relayRaw } from './raw-relay.ts';

/*
 * With the beta `server-side-fallback-2026-07-01`, another model continues an answer that the first one has refused: in
 * the same stream, after a block of type `fallback`.
 */

const ask = (...answers: readonly RawAnswer[]) =>
  relayRaw(answers, { wire: 'messages', request: { model: 'claude-opus-4-8' } });

const iterations = [
  { type: 'message', output_tokens: 3 },
  { type: 'fallback_message', output_tokens: 6 },
];
const END = [end('end_turn', { output_tokens: 9, iterations }), stop];

const REFUSED = 'The tide comes in twice ';
const SAID = 'a day, and what holds fast is there ';
const REST = 'when it is out again.';

/** Everything before the other model speaks. */
const BEGINNING = [
  start(),
  ...textBlock(0, REFUSED),
  blockStart(1, { type: 'fallback', from: { model: 'claude-opus-4-8' }, to: { model: 'claude-sonnet-5' } }),
  blockStop(1),
];
/** The answer to the request for the rest, which repeats the text so far, as requested. */
const CONTINUATION = [start(), ...textBlock(0, REFUSED + SAID + REST), ...END];

const withoutUsage = (body: string) => eventsOf(body).map(({ usage: _, ...said }) => said);

test('an answer that another model continues passes as it came', async () => {
  const whole = [...BEGINNING, ...textBlock(2, SAID, REST), ...END];
  const { client, requests } = await ask(whole);
  expect(client.body).toBe(whole.join(''));
  expect(requests).toHaveLength(1);
});

test('one that is cut while the other model speaks is continued in its block', async () => {
  const first = [...BEGINNING, textStart(2), text(2, SAID)];
  const { client } = await ask([...first, CUT], CONTINUATION);
  const whole = [...first, text(2, REST), blockStop(2), ...END].join('');
  expect(withoutUsage(client.body)).toEqual(withoutUsage(whole));
});

test('one that is cut before the other model speaks has the block, and one behind it', async () => {
  const { client, stream } = await ask([...BEGINNING, CUT], CONTINUATION);
  const told = withoutUsage(client.body);
  const beginning = withoutUsage(BEGINNING.join(''));
  expect(told.slice(0, beginning.length)).toEqual(beginning);
  expect(stream.text).toBe(REFUSED + SAID + REST);
  const started = told.filter(({ type }) => type === 'content_block_start').map(({ index }) => index);
  expect(started).toEqual([0, 1, 2]);
});

describe('a client that continues a refused answer itself', () => {
  const refusal = {
    type: 'refusal',
    category: 'bio',
    explanation: null,
    fallback_credit_token: 'credit_1',
    fallback_has_prefill_claim: true,
  };
  /** As sent by the client: the refused conversation, and the answer so far. */
  const request = {
    model: 'claude-opus-4-8',
    messages: [
      { role: 'user', content: 'Tell me.' },
      { role: 'assistant', content: [{ type: 'text', text: REFUSED.trimEnd() }] },
    ],
    fallback_credit_token: 'credit_1',
  };
  const retry = (...answers: readonly RawAnswer[]) => relayRaw(answers, { wire: 'messages', request });

  test('is sent the credit for it', async () => {
    const whole = [
      start(),
      ...textBlock(0, REFUSED),
      end('refusal', undefined, { stop_details: refusal }),
      stop,
    ];
    const { client, requests } = await ask(whole);
    expect(client.body).toBe(whole.join(''));
    expect(requests).toHaveLength(1);
  });

  test('spends the credit on a request that is sent as it came', async () => {
    const whole = [start(), ...textBlock(0, ' ', SAID, REST), ...END];
    const { client, requests } = await retry(whole);
    expect(client.body).toBe(whole.join(''));
    expect(requests).toMatchObject([request]);
  });

  test('has it continued without the credit, which is for the conversation as it was refused', async () => {
    const cut = [start(), textStart(0), text(0, ` ${SAID}`), CUT];
    const { stream, requests } = await retry(cut, [start(), ...textBlock(0, ` ${SAID}${REST}`), ...END]);
    expect(stream.text).toBe(` ${SAID}${REST}`);
    expect(requests).toMatchObject([{ fallback_credit_token: 'credit_1' }, { model: 'claude-opus-4-8' }]);
    expect(requests[1]).not.toHaveProperty('fallback_credit_token');
  });

  test('has it begun again with the credit where nothing of it was said', async () => {
    const whole = [start(), ...textBlock(0, ' ', SAID, REST), ...END];
    const { requests } = await retry([start(), CUT], whole);
    expect(requests).toMatchObject([request, request]);
  });
});
