import { describe, expect, test } from 'vitest';
import { Transcript } from '../../../../src/plans/transcript.ts';
import { ChatCompletionsReader } from '../../../../src/proxy/wires/chunks/chat-completions.ts';
import type { ChunkReading } from '../../../../src/proxy/wires/chunks/chunk-reader.ts';

function newReader(): ChatCompletionsReader {
  let calls = 0;
  return new ChatCompletionsReader(() => calls++);
}

const read = (data: unknown, event?: string): ChunkReading =>
  newReader().read({
    data: typeof data === 'string' ? data : JSON.stringify(data),
    event,
    id: undefined,
  });

const chunkOf = (delta: unknown, more: object = {}) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'gpt',
  choices: [{ index: 0, delta, finish_reason: null, ...more }],
});

function deltasOf(data: unknown): unknown {
  const event = read(data);
  return event.kind === 'answer' ? event.deltas : event.kind;
}

describe('what a chunk says', () => {
  test.each<[string, unknown, unknown[]]>([
    ['text', { content: 'Hi' }, [{ kind: 'text', text: 'Hi' }]],
    [
      'text beside empty fields',
      { role: 'assistant', content: 'Hi', refusal: null, reasoning: '' },
      [{ kind: 'text', text: 'Hi' }],
    ],
    ['nothing, in the first chunk', { role: 'assistant', content: '' }, []],
    ['nothing at all', {}, []],
    ['null', null, []],
    ['content that is null', { content: null }, []],
    ['a refusal', { refusal: 'No.' }, [{ kind: 'refusal', text: 'No.' }]],
    ['reasoning', { reasoning_content: 'Hm' }, [{ kind: 'reasoning', text: 'Hm' }]],
    ['reasoning under its other name', { reasoning: 'Hm', content: '' }, [{ kind: 'reasoning', text: 'Hm' }]],
    ['reasoning under its third name', { reasoning_text: 'Hm' }, [{ kind: 'reasoning', text: 'Hm' }]],
    [
      'reasoning under two names: once',
      { reasoning_content: 'Hm', reasoning: 'Hm' },
      [{ kind: 'reasoning', text: 'Hm' }],
    ],
    [
      'reasoning that is empty under its first name',
      { reasoning_content: '', reasoning: 'Hm' },
      [{ kind: 'reasoning', text: 'Hm' }],
    ],
    [
      'reasoning before text',
      { content: 'So', reasoning_content: 'Hm' },
      [
        { kind: 'reasoning', text: 'Hm' },
        { kind: 'text', text: 'So' },
      ],
    ],
    [
      'parts (Mistral)',
      {
        content: [
          { type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }, { type: 'text', text: '' }, null] },
          { type: 'text', text: 'So' },
          { type: 'text', text: '' },
          'stray',
        ],
      },
      [
        { kind: 'reasoning', text: 'Hm' },
        { kind: 'text', text: 'So' },
      ],
    ],
  ])('%s', (_, delta, deltas) => {
    expect(deltasOf(chunkOf(delta))).toEqual(deltas);
  });

  test('the finish reason comes last', () => {
    expect(deltasOf(chunkOf({ content: 'Hi' }, { finish_reason: 'stop' }))).toEqual([
      { kind: 'text', text: 'Hi' },
      { kind: 'finish', reason: 'stop' },
    ]);
  });

  test.each([[null], [''], [undefined], [1]])('%j is no finish reason', (finish_reason) => {
    expect(deltasOf(chunkOf({ content: 'Hi' }, { finish_reason }))).toEqual([{ kind: 'text', text: 'Hi' }]);
  });

  test('an unknown finish reason is one', () => {
    expect(deltasOf(chunkOf({}, { finish_reason: 'eos_token' }))).toEqual([
      { kind: 'finish', reason: 'eos_token' },
    ]);
  });
});

describe('the usage report', () => {
  const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7, detail: { x: 1 } };
  test.each<[string, unknown, unknown[]]>([
    ['in a chunk of its own', { choices: [], usage }, [{ kind: 'usage', usage }]],
    ['in a chunk without choices', { usage }, [{ kind: 'usage', usage }]],
    [
      'in the finish chunk',
      { ...chunkOf({}, { finish_reason: 'stop' }), usage },
      [
        { kind: 'finish', reason: 'stop' },
        { kind: 'usage', usage },
      ],
    ],
    [
      'beside text, as continuous usage',
      { ...chunkOf({ content: 'Hi' }), usage },
      [
        { kind: 'text', text: 'Hi' },
        { kind: 'usage', usage },
      ],
    ],
    [
      'without totals',
      { choices: [], usage: { completion_tokens: 4 } },
      [{ kind: 'usage', usage: { prompt_tokens: 0, completion_tokens: 4, total_tokens: 4 } }],
    ],
    ['null', { ...chunkOf({ content: 'Hi' }), usage: null }, [{ kind: 'text', text: 'Hi' }]],
    ['without numbers', { choices: [], usage: { completion_tokens: 'many' } }, []],
  ])('%s', (_, chunk, deltas) => {
    expect(deltasOf(chunk)).toEqual(deltas);
  });
});

describe('kinds of events', () => {
  test.each<[string, unknown, string | undefined, Partial<ChunkReading> & { kind: string }]>([
    ['[DONE]', '[DONE]', undefined, { kind: 'done' }],
    ['[DONE] with blanks', ' [DONE] ', undefined, { kind: 'done' }],
    ['text that is no JSON', '{"choices":', undefined, { kind: 'malformed' }],
    ['JSON that is no object', '5', undefined, { kind: 'malformed' }],
    ['a choice that is none', { choices: ['x'] }, undefined, { kind: 'malformed' }],
    ['choices that are no list', { choices: { 0: {} } }, undefined, { kind: 'malformed' }],
    ['a delta that is none', { choices: [{ delta: 'Hi' }] }, undefined, { kind: 'malformed' }],
    ['content that is no text', chunkOf({ content: 7 }), undefined, { kind: 'malformed' }],
    ['content that is an object', chunkOf({ content: { text: 'Hi' } }), undefined, { kind: 'malformed' }],
    ['a refusal that is no text', chunkOf({ refusal: ['No'] }), undefined, { kind: 'malformed' }],
    ['calls that are no list', chunkOf({ tool_calls: { id: 'a' } }), undefined, { kind: 'malformed' }],
    ['a call that is none', chunkOf({ tool_calls: ['a'] }), undefined, { kind: 'malformed' }],
    [
      'arguments that are no text',
      chunkOf({ tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: [1] } }] }),
      undefined,
      { kind: 'malformed' },
    ],
    [
      'legacy arguments that are no text',
      chunkOf({ function_call: { name: 'f', arguments: 7 } }),
      undefined,
      { kind: 'malformed' },
    ],
    ['nothing at all', '', undefined, { kind: 'nothing' }],
    ['null', 'null', undefined, { kind: 'nothing' }],
    ['a sign of life that is no JSON', 'ping', 'keepalive', { kind: 'nothing' }],
    ['empty content', chunkOf({ content: {}, tool_calls: null }), undefined, { kind: 'answer', deltas: [] }],
    ['an unknown type', { type: 'tide', height: 3 }, undefined, { kind: 'answer', deltas: [] }],
    ['a ping', { type: 'ping' }, 'ping', { kind: 'answer', deltas: [] }],
    [
      'prompt filter results (Azure)',
      { id: '', choices: [], prompt_filter_results: [] },
      undefined,
      { kind: 'answer', deltas: [] },
    ],
    [
      'an error',
      { error: { message: 'Oh', type: 'server_error' } },
      undefined,
      { kind: 'error_event', error: { words: ['server_error'], message: 'Oh' } },
    ],
    [
      'an error in an array',
      [{ error: { message: 'Oh', type: 'server_error' } }],
      undefined,
      { kind: 'error_event', error: { words: ['server_error'], message: 'Oh' } },
    ],
    ['an array without one', [1], undefined, { kind: 'malformed' }],
    [
      'an error beside a finish reason (OpenRouter)',
      { ...chunkOf({ content: '' }, { finish_reason: 'error' }), error: { code: 502, message: 'Oh' } },
      undefined,
      { kind: 'error_event', error: { status: 502, words: ['502'], message: 'Oh' } },
    ],
    [
      'an error that is not nested',
      { object: 'error', message: 'Oh', type: 'server_error' },
      undefined,
      { kind: 'error_event', error: { words: ['server_error'], message: 'Oh' } },
    ],
    [
      'an event called error',
      { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
      'error',
      { kind: 'error_event', error: { words: ['overloaded_error'], message: 'Overloaded' } },
    ],
    [
      'an event called error, in prose',
      'Oh dear',
      'error',
      { kind: 'error_event', error: { words: [], message: 'Oh dear' } },
    ],
    [
      'an event called error, of an unknown shape',
      { detail: 'Oh' },
      'error',
      { kind: 'error_event', error: { words: [], message: '{"detail":"Oh"}' } },
    ],
    [
      'an event called error, beside choices',
      { choices: [], detail: 'Oh' },
      'error',
      { kind: 'error_event', error: { words: [], message: '{"choices":[],"detail":"Oh"}' } },
    ],
    [
      'a failure dressed as a finish reason',
      chunkOf({ content: '' }, { finish_reason: 'overloaded_error' }),
      undefined,
      { kind: 'bad_finish', reason: 'overloaded_error', status: 529 },
    ],
    [
      'a chunk whose error is null',
      { ...chunkOf({ content: 'Hi' }), error: null },
      undefined,
      { kind: 'answer' },
    ],
  ])('%s', (_, data, event, expected) => {
    expect(read(data, event)).toMatchObject(expected);
  });
});

describe('a chunk', () => {
  test('without choices brings no role', () => {
    expect(read({ choices: [] })).toMatchObject({ role: false });
  });

  test('is kept as it came', () => {
    const data = JSON.stringify(chunkOf({ content: 'Hi' }));
    expect(read(data)).toMatchObject({ payload: data, chunk: JSON.parse(data) });
  });

  test('of several lines becomes one, for clients take only one', () => {
    const event = read('{"choices":\n[]}');
    expect(event).toMatchObject({ kind: 'answer', payload: '{"choices": []}' });
  });

  test.each<[string, object | null, boolean]>([
    ['with a role', { role: 'assistant', content: '' }, true],
    ['with a role and text', { role: 'assistant', content: 'Hi' }, true],
    ['without one', { content: 'Hi' }, false],
    ['without a delta', null, false],
  ])('%s', (_, delta, role) => {
    expect(read(chunkOf(delta))).toMatchObject({ role });
  });

  test.each<[string, unknown[], boolean]>([
    ['no choice', [], false],
    ['one choice', [{ index: 0, delta: {} }], false],
    ['one choice without an index', [{ delta: {} }], false],
    ['another choice than the first', [{ index: 1, delta: {} }], true],
    [
      'two choices',
      [
        { index: 0, delta: {} },
        { index: 1, delta: {} },
      ],
      true,
    ],
  ])('of %s', (_, choices, manyChoices) => {
    expect(read({ choices })).toMatchObject({ manyChoices });
  });
});

describe('tool calls, in every shape they come in', () => {
  const fragment = (fields: object, name?: string, text?: unknown) => ({
    ...fields,
    function: { ...(name !== undefined && { name }), ...(text !== undefined && { arguments: text }) },
  });

  /** The calls of a stream with these fragments: one chunk for each, or for each list of them. */
  function callsOf(...chunks: (object | object[])[]) {
    const reader = newReader();
    const transcript = new Transcript();
    for (const fragments of chunks) {
      const data = JSON.stringify(chunkOf({ tool_calls: [fragments].flat() }));
      const event = reader.read({ data, event: undefined, id: undefined });
      if (event.kind === 'answer') for (const delta of event.deltas) transcript.fold(delta);
    }
    return transcript.toolCalls.map(({ id, name, arguments: text }) => `${id} ${name}(${text})`);
  }

  test.each<[string, (object | object[])[], string[]]>([
    [
      'name first, then fragments by index (OpenAI)',
      [
        fragment({ index: 0, id: 'a', type: 'function' }, 'weather', ''),
        fragment({ index: 0 }, undefined, '{"city":'),
        fragment({ index: 0 }, undefined, '"Paris"}'),
        fragment({ index: 1, id: 'b', type: 'function' }, 'now', ''),
        fragment({ index: 1 }, undefined, '{}'),
      ],
      ['a weather({"city":"Paris"})', 'b now({})'],
    ],
    [
      'fragments of several calls interleaved',
      [
        [fragment({ index: 0, id: 'a' }, 'weather', ''), fragment({ index: 1, id: 'b' }, 'now', '')],
        fragment({ index: 1 }, undefined, '{'),
        fragment({ index: 0 }, undefined, '{"city"'),
        fragment({ index: 1 }, undefined, '}'),
        fragment({ index: 0 }, undefined, ':1}'),
      ],
      ['a weather({"city":1})', 'b now({})'],
    ],
    [
      'each call whole (xAI, Ollama)',
      [
        fragment({ index: 0, id: 'a' }, 'weather', '{"city":"Paris"}'),
        fragment({ index: 1, id: 'b' }, 'now', '{}'),
      ],
      ['a weather({"city":"Paris"})', 'b now({})'],
    ],
    [
      'without an index (Gemini)',
      [
        fragment({ id: 'a' }, 'weather', '{"city":'),
        fragment({}, undefined, '"Paris"}'),
        fragment({ id: 'b' }, 'now', '{}'),
      ],
      ['a weather({"city":"Paris"})', 'b now({})'],
    ],
    [
      'one index for all, ids of their own',
      [
        fragment({ index: 0, id: 'a' }, 'now', '{}'),
        fragment({ index: 0, id: 'b' }, 'now', '{'),
        fragment({ index: 0 }, undefined, '}'),
      ],
      ['a now({})', 'b now({})'],
    ],
    [
      'the id repeated with every fragment',
      [fragment({ index: 0, id: 'a' }, 'now', '{'), fragment({ index: 0, id: 'a' }, 'now', '}')],
      ['a now({})'],
    ],
    [
      'an empty id and name repeated with every fragment',
      [fragment({ index: 0, id: 'a' }, 'now', '{'), fragment({ index: 0, id: '' }, '', '}')],
      ['a now({})'],
    ],
    [
      'by id, whatever the index says',
      [
        fragment({ index: 0, id: 'a' }, 'now', '{'),
        fragment({ index: 1, id: 'b' }, 'now', '{'),
        fragment({ index: 1, id: 'a' }, undefined, '}'),
        fragment({ index: 0, id: 'b' }, undefined, '}'),
      ],
      ['a now({})', 'b now({})'],
    ],
    [
      'indexes with gaps',
      [
        fragment({ index: 3, id: 'a' }, 'now', '{'),
        fragment({ index: 7, id: 'b' }, 'now', '{}'),
        fragment({ index: 3 }, undefined, '}'),
      ],
      ['a now({})', 'b now({})'],
    ],
    [
      'the name late',
      [
        fragment({ index: 0, id: 'a' }, undefined, '{"ci'),
        fragment({ index: 0 }, undefined, 'ty":'),
        fragment({ index: 0 }, 'weather', '1}'),
      ],
      ['a weather({"city":1})'],
    ],
    [
      'the id late',
      [fragment({ index: 0 }, undefined, '{"ci'), fragment({ index: 0, id: 'a' }, 'weather', 'ty":1}')],
      ['a weather({"city":1})'],
    ],
    [
      'the id later than the name',
      [
        fragment({ index: 0 }, 'weather', ''),
        fragment({ index: 0, id: 'a' }, undefined, '{"city":1}'),
        fragment({ id: 'a' }, undefined, ' '),
      ],
      [' weather({"city":1} )'],
    ],
    [
      'without ids, then one with an id on the same index',
      [fragment({ index: 0 }, 'now', '{}'), fragment({ index: 0, id: 'b' }, 'now', '{}')],
      [' now({})', 'b now({})'],
    ],
    [
      'without any id',
      [fragment({ index: 0 }, 'now', '{'), fragment({ index: 0 }, undefined, '}')],
      [' now({})'],
    ],
    ['the name alone', [fragment({ index: 0, id: 'a' }, 'now')], ['a now()']],
    ['null for arguments', [fragment({ index: 0, id: 'a' }, 'now', null)], ['a now()']],
    [
      'an object for arguments',
      [fragment({ index: 0, id: 'a' }, 'weather', { city: 'Paris' })],
      ['a weather({"city":"Paris"})'],
    ],
    [
      'two documents glued on one index, which cannot be told apart',
      [fragment({ index: 0, id: 'a' }, 'now', '{}'), fragment({ index: 0 }, 'now', '{}')],
      ['a now({}{})'],
    ],
    ['never a name', [fragment({ index: 0, id: 'a' }, undefined, '{}')], []],
    ['no function at all', [{ index: 0, id: 'a', type: 'function' }], []],
    ['no object at all', [['x', null] as unknown as object[]], []],
  ])('%s', (_, chunks, calls) => {
    expect(callsOf(...chunks)).toEqual(calls);
  });

  test('numbers are the run’s own', () => {
    let next = 5;
    const reader = new ChatCompletionsReader(() => next++);
    const data = JSON.stringify(chunkOf({ tool_calls: [fragment({ index: 0, id: 'a' }, 'now', '{}')] }));
    const event = reader.read({ data, event: undefined, id: undefined });
    expect(event.kind === 'answer' && event.deltas).toStrictEqual([
      { kind: 'tool_start', index: 5, id: 'a', name: 'now' },
      { kind: 'tool_arguments', index: 5, text: '{}' },
    ]);
  });

  test('fields of the provider’s own are kept', () => {
    const extra_content = { google: { thought_signature: 'abc' } };
    const deltas = deltasOf(
      chunkOf({ tool_calls: [{ ...fragment({ id: 'a', type: 'function' }, 'now', '{}'), extra_content }] }),
    );
    expect(deltas).toContainEqual({
      kind: 'tool_start',
      index: 0,
      id: 'a',
      name: 'now',
      extra: { extra_content },
    });
  });

  test('the legacy function_call is one call without an id', () => {
    const reader = newReader();
    const transcript = new Transcript();
    for (const function_call of [
      { name: 'weather', arguments: '' },
      { arguments: '{"city":' },
      { arguments: '1}' },
    ]) {
      const data = JSON.stringify(chunkOf({ role: 'assistant', content: null, function_call }));
      const event = reader.read({ data, event: undefined, id: undefined });
      if (event.kind === 'answer') for (const delta of event.deltas) transcript.fold(delta);
    }
    expect(transcript.toolCalls).toMatchObject([{ id: '', name: 'weather', arguments: '{"city":1}' }]);
  });
});

test('calls whose names never come are unreadable once they are large, or many', () => {
  const readUntil = (makeFragment: (event: number) => object): number => {
    let calls = 0;
    const reader = new ChatCompletionsReader(() => calls++);
    for (let event = 0; event < 10_000; event++) {
      const chunk = { choices: [{ index: 0, delta: { tool_calls: [makeFragment(event)] } }] };
      if (reader.read({ data: JSON.stringify(chunk), event: undefined, id: undefined }).kind === 'malformed')
        return event;
    }
    return Number.POSITIVE_INFINITY;
  };
  const arguments_ = 'x'.repeat(10_000);
  expect(readUntil(() => ({ index: 0, function: { arguments: arguments_ } }))).toBeCloseTo(104, -1);
  expect(readUntil((index) => ({ index }))).toBeCloseTo(4_096, -1);
  const named = (index: number) => ({
    index,
    id: `call_${index}`,
    function: { name: 'now', arguments: '{}' },
  });
  expect(readUntil(named)).toBe(Number.POSITIVE_INFINITY);
});
