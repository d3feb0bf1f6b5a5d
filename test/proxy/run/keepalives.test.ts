import { describe, expect, test } from 'vitest';
import { chunkEvent } from '../../http-peer.ts';
import { signatureOf } from '../../provider/wires/messages-events.ts';
import type { SimulationOptions } from '../../simulation/simulate.ts';
import {
  blockStop,
  end,
  eventsOf,
  input,
  ping,
  signature,
  start,
  stop,
  text,
  textBlock,
  textStart,
  thinking,
  thinkingStart,
  toolStart,
} from '../wires/messages-raw.ts';
import { CUT, PATIENT_CLOCKS, type RawAnswer, relayRaw } from '../wires/raw-relay.ts';
import { begin, completed, itemsOf, message } from '../wires/responses-items.ts';
import { framed, SAID_TEXT, SlowCall } from '../wires/slow-call.ts';

const KEEPALIVE_MS = 15_000;
/** Takes ten minutes. */
const SLOW = new SlowCall(60, 10_000);
const LEAST_MS = 600_000;
const DONE = 'data: [DONE]\n\n';

const ask = (answers: readonly RawAnswer[], options: SimulationOptions) =>
  relayRaw(answers, {
    ...options,
    configuration: {
      clocks: PATIENT_CLOCKS,
      ...options.configuration,
    },
  });

const longestGap_ms = (events_ms: readonly number[], until_ms: number): number =>
  Math.max(...[...events_ms.slice(1), until_ms].map((at_ms, index) => at_ms - (events_ms[index] ?? 0)));

describe('a call that is held for ten minutes', () => {
  test.each<[string, RawAnswer, SimulationOptions]>([
    ['/v1/chat/completions', SLOW.chat, {}],
    ['/v1/responses', SLOW.responses, { wire: 'responses' }],
    ['/v1/messages', SLOW.messages, { wire: 'messages' }],
  ])('leaves no client of %s without an event for longer than the keep-alive', async (_, answer, options) => {
    const { outcome, stream, events_ms, end_ms, requests, client } = await ask([answer], options);

    expect(outcome).toBe('complete');
    expect(requests).toHaveLength(1);
    expect(end_ms).toBeGreaterThanOrEqual(LEAST_MS);
    expect(longestGap_ms(events_ms, end_ms)).toBeLessThanOrEqual(KEEPALIVE_MS);
    expect(client.body).not.toContain(': hb');
    expect(stream.violations).toEqual([]);
    expect(stream.text).toBe(SAID_TEXT);
    expect(stream.toolCalls).toMatchObject([{ arguments: SLOW.arguments }]);
  });

  test('does not change what the provider says of its response', async () => {
    const { client } = await ask([SLOW.responses], { wire: 'responses' });
    const last = eventsOf(client.body).at(-1);
    expect(last).toEqual({
      ...SLOW.responsesEnd,
      sequence_number: expect.any(Number),
    });
  });

  test('is configurable', async () => {
    const delivery = { keepalive_ms: 6000, client_profiles: true, tool_calls: 'held' } as const;
    const configuration = { delivery };
    const { events_ms, end_ms } = await ask([SLOW.messages], { wire: 'messages', configuration });
    expect(longestGap_ms(events_ms, end_ms)).toBe(6000);
  });
});

/** The empty deltas of a message, as the indices of their blocks. */
const emptyIn = (body: string) =>
  eventsOf(body).flatMap(({ type, index, delta }) => {
    const said = Object.values((delta ?? {}) as object).at(-1);
    return type === 'content_block_delta' && said === '' ? [index] : [];
  });
const typesOf = (body: string) => eventsOf(body).map(({ type }) => type);

describe('a client of /v1/messages that counts only content', () => {
  test('gets some of the text before a call that is held, whose end waits for the call', async () => {
    const { client } = await ask([SLOW.messages], { wire: 'messages' });
    const types = typesOf(client.body);

    expect(new Set(emptyIn(client.body))).toEqual(new Set([0]));
    expect(types.indexOf('content_block_stop')).toBe(types.lastIndexOf('content_block_start') - 1);
  });

  test('gets some of the thinking before it, which is signed already', async () => {
    const answer: RawAnswer = [
      start(),
      thinkingStart(0),
      thinking(0, 'So.'),
      signature(0, signatureOf('So.')),
      blockStop(0),
      toolStart(1, 'toolu_1'),
      ...SLOW.slowly((piece) => input(1, piece)),
      blockStop(1),
      end('tool_use'),
      stop,
    ];
    const { client, stream, events_ms, end_ms } = await ask([answer], { wire: 'messages' });

    expect(new Set(emptyIn(client.body))).toEqual(new Set([0]));
    expect(longestGap_ms(events_ms, end_ms)).toBeLessThanOrEqual(KEEPALIVE_MS);
    expect(stream.violations).toEqual([]);
  });

  test('gets content in place of the pings of the provider', async () => {
    const answer: RawAnswer = [
      start(),
      ...textBlock(0, SAID_TEXT),
      toolStart(1, 'toolu_1'),
      ...Array.from({ length: 20 }, () => [8000, ping]).flat(),
      input(1, '{}'),
      blockStop(1),
      end('tool_use'),
      stop,
    ];
    const { client } = await ask([answer], { wire: 'messages' });

    expect(emptyIn(client.body)).toHaveLength(20);
    expect(typesOf(client.body)).not.toContain('ping');
  });

  test('gets pings where nothing is open', async () => {
    const answer: RawAnswer = [
      start(),
      toolStart(0, 'toolu_1'),
      ...SLOW.slowly((piece) => input(0, piece)),
      blockStop(0),
      end('tool_use'),
      stop,
    ];
    const { client, stream } = await ask([answer], { wire: 'messages' });

    expect(typesOf(client.body).filter((type) => type === 'ping').length).toBeGreaterThan(30);
    expect(stream.violations).toEqual([]);
    expect(stream.toolCalls).toHaveLength(1);
  });

  test('gets the end of a block that the provider has ended, and then the error', async () => {
    const answer: RawAnswer = [start(), ...textBlock(0, SAID_TEXT), toolStart(1, 'toolu_1'), CUT];
    const { client, outcome } = await ask([answer], {
      wire: 'messages',
      recovery: { max_attempts: 1 },
    });

    expect(outcome).toBe('failed');
    expect(typesOf(client.body).slice(-2)).toEqual(['content_block_stop', 'error']);
  });

  test('does not see text of the next attempt in a block that has ended', async () => {
    const cut: RawAnswer = [start(), ...textBlock(0, SAID_TEXT), toolStart(1, 'toolu_1'), 20_000, CUT];
    const rest: RawAnswer = [start(), ...textBlock(0, SAID_TEXT, ' Here it is.'), end('end_turn'), stop];
    const { client, stream } = await ask([cut, rest], { wire: 'messages' });

    const starts = eventsOf(client.body).filter(({ type }) => type === 'content_block_start');
    expect(stream.violations).toEqual([]);
    expect(starts.map(({ index }) => index)).toEqual([0, 1]);
  });
});

describe('before there is any of the answer', () => {
  const SILENT_MS = 100_000;

  test('a client of /v1/chat/completions gets comments: a chunk would give the answer a name', async () => {
    const { client } = await ask(
      [
        [
          chunkEvent({ role: 'assistant', content: '' }),
          SILENT_MS,
          chunkEvent({ content: 'Kelp.' }),
          chunkEvent({}, 'stop'),
          DONE,
        ],
      ],
      {},
    );
    expect(client.body).toMatch(/^(: hb\n){6,7}data: /);
  });

  test('a client of /v1/messages gets pings', async () => {
    const { client, events_ms, stream } = await ask(
      [[SILENT_MS, start(), textStart(0), text(0, 'Kelp.'), blockStop(0), end('end_turn'), stop]],
      { wire: 'messages' },
    );
    expect(typesOf(client.body).slice(0, 7)).toEqual([...Array(6).fill('ping'), 'message_start']);
    expect(events_ms[0]).toBe(KEEPALIVE_MS);
    expect(stream).toMatchObject({ text: 'Kelp.', violations: [] });
  });

  test('a client of /v1/responses gets what the provider has announced, and that it is in progress', async () => {
    const whole = message('msg_1', 0, ['Kelp.']);
    const answer = [...framed(begin(1)), SILENT_MS, ...framed([...whole, completed(1, itemsOf(whole))], 2)];
    const { client, events_ms, stream } = await ask([answer], { wire: 'responses' });

    expect(typesOf(client.body).slice(0, 3)).toEqual([
      'response.created',
      'response.in_progress',
      'response.in_progress',
    ]);
    expect(longestGap_ms(events_ms, events_ms.at(-1) ?? 0)).toBeLessThanOrEqual(KEEPALIVE_MS);
    expect(stream).toMatchObject({ text: 'Kelp.', violations: [] });
  });

  test('that commits the answer to no attempt: another one begins it', async () => {
    const whole = message('msg_2', 0, ['Kelp.']);
    const { stream, requests, outcome } = await ask(
      [[...framed(begin(1)), SILENT_MS, CUT], framed([...begin(2), ...whole, completed(2, itemsOf(whole))])],
      { wire: 'responses' },
    );
    expect(outcome).toBe('recovered');
    expect(requests).toHaveLength(2);
    expect(stream).toMatchObject({ text: 'Kelp.', violations: [] });
  });

  test('the wait for a provider that says nothing at all is ended by its clocks', async () => {
    const configuration = { clocks: undefined };
    const { outcome, client } = await relayRaw(
      Array.from({ length: 8 }, () => [...framed(begin(1)), 3_600_000, CUT]),
      { wire: 'responses', ...configuration },
    );
    expect(outcome).toBe('failed');
    expect(typesOf(client.body).at(-1)).toBe('response.failed');
  });
});
