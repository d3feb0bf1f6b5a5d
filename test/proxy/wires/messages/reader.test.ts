import { describe, expect, test } from 'vitest';
import type { Delta } from '../../../../src/plans/delta.ts';
import { MessagesReader, type MessagesReading } from '../../../../src/proxy/wires/messages/reader.ts';
import {
  blockDelta,
  blockStart,
  blockStop,
  end,
  event,
  input,
  ping,
  signature,
  start,
  stop,
  text,
  textStart,
  thinking,
  thinkingStart,
  toolStart,
} from '../messages-raw.ts';

/** The last reading of these events. */
function read(...events: readonly string[]): MessagesReading {
  let calls = 0;
  const reader = new MessagesReader(() => calls++);
  const readings = events.map((frame) => {
    const [, name, data = ''] = /^(?:event: (.*)\n)?data: (.*)\n\n$/s.exec(frame) ?? [];
    return reader.read({ event: name, data, id: undefined });
  });
  const last = readings.at(-1);
  if (!last) throw new Error('nothing was read');
  return last;
}

function deltasOf(...events: readonly string[]): readonly Delta[] | string {
  const reading = read(start(), ...events);
  return reading.kind === 'answer' ? reading.deltas : reading.kind;
}

describe('what an event says', () => {
  test.each<[string, string[], readonly Delta[] | string]>([
    ['text', [textStart(0), text(0, 'Hi')], [{ kind: 'text', text: 'Hi' }]],
    [
      'text that began with the block',
      [blockStart(0, { type: 'text', text: 'Hi' })],
      [{ kind: 'text', text: 'Hi' }],
    ],
    ['no text', [textStart(0), text(0, '')], []],
    ['thinking', [thinkingStart(0), thinking(0, 'Hm')], [{ kind: 'reasoning', text: 'Hm' }]],
    ['a signature', [thinkingStart(0), signature(0, 'c2ln')], []],
    ['a call', [toolStart(0, 'toolu_1')], [{ kind: 'tool_start', index: 0, id: 'toolu_1', name: 'tides' }]],
    [
      "a call with fields of the provider's",
      [toolStart(0, 'toolu_1', { caller: { type: 'direct' } })],
      [{ kind: 'tool_start', index: 0, id: 'toolu_1', name: 'tides', extra: { caller: { type: 'direct' } } }],
    ],
    ['arguments', [toolStart(0, 'a'), input(0, '{"a')], [{ kind: 'tool_arguments', index: 0, text: '{"a' }]],
    ['no arguments', [toolStart(0, 'a'), input(0, '')], []],
    [
      'the end of a call',
      [toolStart(0, 'a'), input(0, '{}'), blockStop(0)],
      [{ kind: 'tool_close', index: 0, proof: 3 }],
    ],
    [
      'the end of a call without arguments',
      [toolStart(0, 'a'), blockStop(0)],
      [{ kind: 'tool_close', index: 0, proof: 3 }],
    ],
    [
      'the end of a call that began with its arguments',
      [toolStart(0, 'a', { input: { a: 1 } }), blockStop(0)],
      [
        { kind: 'tool_arguments', index: 0, text: '{"a":1}' },
        { kind: 'tool_close', index: 0, proof: 3 },
      ],
    ],
    [
      'the end of a call that began with a placeholder',
      [toolStart(0, 'a', { input: { a: 0 } }), input(0, '{"a":1}'), blockStop(0)],
      [{ kind: 'tool_close', index: 0, proof: 3 }],
    ],
    ['the end of arguments that are not whole', [toolStart(0, 'a'), input(0, '{"a'), blockStop(0)], []],
    ['the end of text', [textStart(0), blockStop(0)], []],
    [
      'two calls at once',
      [toolStart(0, 'a'), toolStart(1, 'b'), input(0, '{}'), input(1, '{}'), blockStop(1)],
      [{ kind: 'tool_close', index: 1, proof: 3 }],
    ],
    [
      'half the input of a tool that the provider is to run',
      [blockStart(0, { type: 'server_tool_use', id: 's', name: 'web_search' }), input(0, '{"q')],
      [],
    ],
    [
      'a tool that the provider runs',
      [
        blockStart(0, { type: 'server_tool_use', id: 's', name: 'web_search' }),
        input(0, '{"q":1}'),
        blockStop(0),
      ],
      [{ kind: 'provider_tool_start', id: 's', name: 'web_search' }],
    ],
    [
      'the result of a tool that the provider ran',
      [
        blockStart(0, {
          type: 'mcp_tool_use',
          id: 'm',
          name: 'create_ticket',
          server_name: 'desk',
          input: {},
        }),
        input(0, '{"q":1}'),
        blockStop(0),
        blockStart(1, { type: 'mcp_tool_result', tool_use_id: 'm', content: [] }),
        blockStop(1),
      ],
      [
        {
          kind: 'provider_tool_end',
          id: 'm',
          name: 'create_ticket',
          items: [
            { type: 'mcp_tool_use', id: 'm', name: 'create_ticket', server_name: 'desk', input: { q: 1 } },
            { type: 'mcp_tool_result', tool_use_id: 'm', content: [] },
          ],
        },
      ],
    ],
    [
      'the result of a use that the request has brought',
      [blockStart(0, { type: 'web_search_tool_result', tool_use_id: 's', content: [] }), blockStop(0)],
      [
        {
          kind: 'provider_tool_end',
          id: 's',
          name: 'web_search',
          items: [{ type: 'web_search_tool_result', tool_use_id: 's', content: [] }],
        },
      ],
    ],
    ['a ping', [ping], []],
    ['an event of tomorrow', [event({ type: 'tomorrow' })], []],
    ['a delta of tomorrow', [textStart(0), blockDelta(0, { type: 'tomorrow_delta', text: 'x' })], []],
    ['an end', [end('end_turn', {})], [{ kind: 'finish', reason: 'stop' }]],
    ['a limit', [end('max_tokens', {})], [{ kind: 'finish', reason: 'length' }]],
    ['a full window', [end('model_context_window_exceeded', {})], [{ kind: 'finish', reason: 'length' }]],
    ['calls to be answered', [end('tool_use', {})], [{ kind: 'finish', reason: 'tool_calls' }]],
    ['a stop sequence', [end('stop_sequence', {})], [{ kind: 'finish', reason: 'stop' }]],
    ['a refusal', [end('refusal', {})], [{ kind: 'finish', reason: 'content_filter' }]],
    ['a pause', [end('pause_turn', {})], [{ kind: 'finish', reason: 'pause_turn' }]],
    [
      'a report alone',
      [event({ type: 'message_delta', delta: {}, usage: { output_tokens: 4 } })],
      [
        {
          kind: 'usage',
          usage: {
            output_tokens: 4,
            input_tokens: 11,
            cache_creation_input_tokens: 3,
            cache_read_input_tokens: 5,
            prompt_tokens: 19,
            completion_tokens: 4,
            total_tokens: 23,
          },
        },
      ],
    ],
    ['the last event', [stop], 'done'],
  ])('%s', (_, events, expected) => {
    expect(deltasOf(...events)).toEqual(expected);
  });

  test('a report of the whole input comes before that of the beginning', () => {
    const reading = read(start(), end('end_turn', { input_tokens: 900, output_tokens: 4 }));
    const usage = reading.kind === 'answer' ? reading.deltas.find(({ kind }) => kind === 'usage') : undefined;
    expect(usage).toMatchObject({ usage: { prompt_tokens: 908, completion_tokens: 4 } });
  });
});

describe('what is no part of an answer', () => {
  const failure = (type: string, message: string) => ({
    kind: 'error_event',
    error: expect.objectContaining({ words: [type], message }) as object,
  });
  const error = (type: string) => event({ type: 'error', error: { type, message: 'No.' } });

  test.each<[string, string[], object]>([
    ['an error', [error('overloaded_error')], failure('overloaded_error', 'No.')],
    [
      'an error without a name',
      [error('api_error').replace('event: error\n', '')],
      failure('api_error', 'No.'),
    ],
    [
      'an error of another API',
      ['data: {"error":{"type":"server_error","message":"No."}}\n\n'],
      failure('server_error', 'No.'),
    ],
    [
      'an error that is no JSON',
      ['event: error\ndata: upstream connect error\n\n'],
      { kind: 'error_event', error: { words: [], message: 'upstream connect error' } },
    ],
    [
      'an error that says nothing',
      ['event: error\ndata: {}\n\n'],
      { kind: 'error_event', error: { words: [], message: '{}' } },
    ],
    [
      'a reason that is a failure',
      [end('overloaded_error')],
      { kind: 'bad_finish', reason: 'overloaded_error', status: 529 },
    ],
    ['half an event', ['event: content_block_delta\ndata: {"type":"content_blo\n\n'], { kind: 'malformed' }],
    ['no type', ['data: {"index":0}\n\n'], { kind: 'malformed' }],
    ['a list', ['data: [1]\n\n'], { kind: 'malformed' }],
    ['the end of chunks', ['data: [DONE]\n\n'], { kind: 'done' }],
    ['nothing at all', ['data:\n\n'], { kind: 'nothing' }],
    ['a sign of life that is no JSON', ['event: ping\ndata: ping\n\n'], { kind: 'nothing' }],
    ['text for a call', [toolStart(0, 'a'), text(0, 'x')], { kind: 'malformed' }],
    [
      'text that is none',
      [
        textStart(0),
        'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":7}}\n\n',
      ],
      { kind: 'malformed' },
    ],
    ['a delta of no block', [text(3, 'x')], { kind: 'malformed' }],
    ['the end of no block', [blockStop(3)], { kind: 'nothing' }],
    ['a call without a name', [toolStart(0, 'a', { name: '' })], { kind: 'malformed' }],
  ])('%s', (_, events, expected) => {
    expect(read(start(), ...events)).toEqual(expected);
  });

  test.each([textStart(0), end('end_turn'), 'event: message_start\ndata: {"type":"message_start"}\n\n'])(
    'what comes before the message: %j',
    (frame) => {
      expect(read(frame)).toEqual({ kind: 'malformed' });
    },
  );
});

describe('thoughts that the provider will have back', () => {
  const thoughts = (...events: readonly string[]) => {
    const reading = read(start(), ...events);
    return reading.kind === 'answer' ? reading.thoughts : undefined;
  };
  const signed = [thinkingStart(0), thinking(0, 'Two '), thinking(0, 'tides.'), signature(0, 'c2ln')];
  const THOUGHT = { type: 'thinking', thinking: 'Two tides.', signature: 'c2ln' };
  const REDACTED = { type: 'redacted_thinking', data: 'xyz' };

  test('those at the head that are signed, and those that are redacted', () => {
    const redacted = [blockStart(1, REDACTED), blockStop(1)];
    expect(thoughts(...signed, blockStop(0), ...redacted)).toEqual([THOUGHT, REDACTED]);
  });

  test('none without a signature', () => {
    expect(thoughts(thinkingStart(0), thinking(0, 'Two tides.'), blockStop(0))).toEqual([]);
  });

  test('none in the middle of the answer', () => {
    const later = [thinkingStart(2), thinking(2, 'So.'), signature(2, 'c2ln'), blockStop(2)];
    expect(thoughts(...signed, blockStop(0), textStart(1), text(1, 'x'), blockStop(1), ...later)).toEqual([
      THOUGHT,
    ]);
  });
});
