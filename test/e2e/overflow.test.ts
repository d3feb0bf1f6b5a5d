import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { WireName } from '../../src/checkpoint/journal.ts';
import type { Fault } from '../provider/fault.ts';
import { PROMPT_END } from '../provider/request.ts';
import type { Plan } from '../provider/script.ts';
import { always, OverflowDeployment, type Say, sizeOf, takes } from './overflow-deployment.ts';

const TEXT = 'The tide comes in twice a day, and what holds fast to the rock is there when it is out again.';
const CUT: Fault = { kind: 'reset', at: { event: 8 } };
const says = (faults: readonly Fault[] = [], more: Partial<Plan> = {}): Plan => ({
  parts: [{ text: TEXT }],
  faults,
  ...more,
});
/** Cuts the first request, then answers. */
const cutOnce: Say = (_, before) => says(before === 0 ? always(CUT) : []);
/** Cuts the first request, then refuses. */
const cutAndFull =
  (wire: WireName): Say =>
  (body, before) =>
    before === 0 ? says(always(CUT)) : takes(0, wire, cutOnce)(body, before);

const QUESTION = 'What about the tide?';
const LIMIT = 1000;

const ON_WIRES: readonly WireName[] = ['chat_completions', 'completions', 'messages', 'responses'];
/** In the terms of the readers of all wires. */
const ENDED = { finish: 'length', done: true, error: undefined };
const WHOLE = { text: TEXT, finish: 'stop', done: true, error: undefined };

/** A model for the wire; on messages, one that continues a prefix. */
const modelOf = (route: string, wire: WireName, name: string) =>
  `${route}-${name}-${wire}${wire === 'messages' ? '-claude-sonnet-4-5' : ''}`;

function requestOf(wire: WireName, model: string, limit?: number) {
  const messages = [{ role: 'user', content: QUESTION }];
  switch (wire) {
    case 'chat_completions':
      return { model, stream: true, messages, ...(limit && { max_tokens: limit }) };
    case 'completions':
      return { model, stream: true, prompt: QUESTION + PROMPT_END, ...(limit && { max_tokens: limit }) };
    case 'messages':
      return { model, stream: true, messages, max_tokens: limit ?? LIMIT };
    case 'responses':
      return { model, stream: true, input: messages, ...(limit && { max_output_tokens: limit }) };
  }
}

let deployment: OverflowDeployment;
beforeAll(async () => {
  deployment = await OverflowDeployment.start();
}, 60_000);
afterAll(() => deployment.close());

describe.each(ON_WIRES)('on %s, an answer whose rest is too long to be asked for', (wire) => {
  test('ends as one that has become as long as it may be', async () => {
    const model = modelOf('plain', wire, 'ends');
    deployment.say('main', model, cutAndFull(wire));
    const { status, reading } = await deployment.ask(wire, requestOf(wire, model));
    expect(status).toBe(200);
    expect(reading).toMatchObject(ENDED);
    expect(reading.text).not.toBe('');
    expect(TEXT.startsWith(reading.text)).toBe(true);
    expect(reading.text).not.toBe(TEXT);
  });

  test('continues at a target that takes more', async () => {
    const model = modelOf('two', wire, 'larger');
    deployment.say('main', model, cutAndFull(wire));
    deployment.say('larger', model, () => says());
    const { reading } = await deployment.ask(wire, requestOf(wire, model));
    expect(reading).toMatchObject(WHOLE);
    expect(deployment.sent('larger', model)).toHaveLength(1);
  });

  test('ends where the larger target has no room for it either', async () => {
    const model = modelOf('two', wire, 'both');
    deployment.say('main', model, cutAndFull(wire));
    deployment.say(
      'larger',
      model,
      takes(0, wire, () => says()),
    );
    const { reading } = await deployment.ask(wire, requestOf(wire, model));
    expect(reading).toMatchObject(ENDED);
    expect(TEXT.startsWith(reading.text)).toBe(true);
    expect(deployment.sent('larger', model)).toHaveLength(1);
  });

  test('is asked for with a lower limit where only that does not fit', async () => {
    const model = modelOf(wire === 'chat_completions' ? 'nudged' : 'plain', wire, 'limit');
    const request = requestOf(wire, model, LIMIT);
    // The question and the limit together fill the context.
    deployment.say('main', model, takes(sizeOf(request), wire, cutOnce));
    const { reading } = await deployment.ask(wire, request);
    expect(reading).toMatchObject(WHOLE);
    const [first, ...others] = deployment.sent('main', model).map(sizeOf);
    expect(first).toBe(sizeOf(request));
    expect(others.at(-1)).toBeLessThanOrEqual(sizeOf(request));
    expect(others.length).toBeLessThanOrEqual(2);
  });

  test('ends where a lower limit does not help', async () => {
    const model = modelOf('plain', wire, 'no-limit');
    deployment.say('main', model, cutAndFull(wire));
    const { reading } = await deployment.ask(wire, requestOf(wire, model, LIMIT));
    expect(reading).toMatchObject(ENDED);
    expect(deployment.sent('main', model)).toHaveLength(3);
  });
});

test('for Codex, an answer whose rest is too long to be asked for ends with the error that it acts on', async () => {
  const model = modelOf('plain', 'responses', 'codex');
  deployment.say('main', model, cutAndFull('responses'));
  const headers = { originator: 'codex_exec' };
  const { body, reading } = await deployment.ask('responses', requestOf('responses', model), headers);
  expect(reading).toMatchObject({ done: false, finish: undefined });
  expect(reading.text).not.toBe('');
  expect(body).toContain('"code":"context_length_exceeded"');
  expect(body).not.toContain('response.incomplete');
});

test('thoughts that are too long to be given back are thought again', async () => {
  const model = 'thinker-1';
  const thought: Plan['parts'] = [{ reasoning: 'Twice a day, says the almanac.' }, { text: TEXT }];
  const cut: Fault = { kind: 'reset', at: { event: 4 } };
  deployment.say('main', model, (body, before) => {
    const plan: Plan = { parts: thought, prefill: 'deepseek', faults: before === 0 ? always(cut) : [] };
    return takes(sizeOf(request), 'chat_completions', () => plan)(body, before);
  });
  const request = requestOf('chat_completions', model);
  const { reading } = await deployment.ask('chat_completions', request);
  expect(reading).toMatchObject(WHOLE);
  const sent = deployment.sent('main', model).map(({ messages }) => messages?.at(-1)?.role);
  expect(sent).toEqual(['user', 'assistant', 'user']);
});
