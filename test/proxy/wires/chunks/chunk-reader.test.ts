import { describe, expect, test } from 'vitest';
import { ChatCompletionsReader } from '../../../../src/proxy/wires/chunks/chat-completions.ts';

const chunkOf = (delta: object, finish_reason: string | null = null, more: object = {}) => ({
  id: 'chatcmpl-1',
  model: 'gpt',
  choices: [{ index: 0, delta, finish_reason, ...more }],
});

function reader() {
  const wire = new ChatCompletionsReader(() => 0);
  return {
    wire,
    read: (event: object) => wire.read({ data: JSON.stringify(event), event: undefined, id: undefined }),
  };
}

describe('what may give the server away', () => {
  test('is the first events and the one that finishes, as they were parsed', () => {
    const { wire, read } = reader();
    const events = [
      { choices: [], prompt_filter_results: [] },
      chunkOf({ role: 'assistant', content: '' }),
      chunkOf({ content: 'A' }),
      chunkOf({ content: ' holdfast' }),
      chunkOf({ reasoning: 'Hm' }),
      chunkOf({}, 'stop', { matched_stop: 1 }),
      { choices: [], usage: null },
      { choices: [] },
    ];
    for (const event of events) read(event);
    expect(wire.samples).toEqual([events[0], events[1], events[2], events[5]]);
  });

  test('is the usage report as well, with which llama.cpp sends its timings', () => {
    const { wire, read } = reader();
    const said = [{ content: 'A' }, { reasoning: 'Hm' }, { refusal: 'No' }, { role: 'assistant' }].map(
      (delta) => chunkOf(delta),
    );
    const finish = chunkOf({}, 'stop');
    const report = {
      choices: [],
      usage: { prompt_tokens: 7, completion_tokens: 4 },
      timings: { predicted_n: 4 },
    };
    for (const event of [...said, finish, report, report]) read(event);
    expect(wire.samples).toEqual([...said.slice(0, 3), finish, report]);
  });

  test('is the finishing event although reports came before it', () => {
    const { wire, read } = reader();
    const said = [{ content: 'A' }, { reasoning: 'Hm' }, { refusal: 'No' }, { role: 'assistant' }].map(
      (delta) => chunkOf(delta),
    );
    const reports = [1, 2, 3].map((completion_tokens) => ({ choices: [], usage: { completion_tokens } }));
    const finish = chunkOf({}, 'stop');
    for (const event of [...said, ...reports, finish]) read(event);
    expect(wire.samples).toEqual([...said.slice(0, 3), finish, reports[0]]);
  });

  test('is kept once where the first event finishes', () => {
    const { wire, read } = reader();
    const event = chunkOf({ content: 'A' }, 'stop');
    read(event);
    expect(wire.samples).toEqual([event]);
  });

  test('does not grow with a stream that finishes again and again', () => {
    const { wire, read } = reader();
    for (let times = 0; times < 100; times++) read(chunkOf({ content: `${times}` }, 'stop'));
    expect(wire.samples).toHaveLength(4);
  });

  test('is nothing but objects', () => {
    const { wire } = reader();
    for (const data of ['5', 'null', '"text"', '[DONE]', '{"half":'])
      wire.read({ data, event: undefined, id: undefined });
    expect(wire.samples).toEqual([]);
  });
});

describe('a role', () => {
  test.each([
    ['assistant', true],
    ['', false],
    [null, false],
    [undefined, false],
  ])('of %j: %j', (role, brings) => {
    expect(reader().read(chunkOf({ role, content: 'A' }))).toMatchObject({ kind: 'answer', role: brings });
  });
});

test('a report within the choice is one (Kimi)', () => {
  const usage = { prompt_tokens: 39, completion_tokens: 211, total_tokens: 250 };
  expect(reader().read(chunkOf({}, 'stop', { usage }))).toMatchObject({
    deltas: [
      { kind: 'finish', reason: 'stop' },
      { kind: 'usage', usage },
    ],
  });
});
