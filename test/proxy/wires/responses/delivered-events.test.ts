import { describe, expect, test } from 'vitest';
import type { JournalEvent } from '../../../../src/checkpoint/journal.ts';
import type { Delta } from '../../../../src/plans/delta.ts';
import { responsesDeliveredEvents as delivered } from '../../../../src/proxy/wires/responses/delivered-events.ts';
import { eventTypeOf } from '../../../../src/proxy/wires/responses/event.ts';
import type { Payload } from '../../../simulation/responses-told.ts';
import { begin, call, completed, customCall, message } from '../responses-items.ts';
import { salvagedEnding } from '../salvaged-ending.ts';

const payloadsOf = (events: readonly Payload[]): string[] =>
  events.map(({ type, ...fields }, sequence_number) => JSON.stringify({ type, sequence_number, ...fields }));
const sent = (events: readonly Payload[]): JournalEvent[] =>
  payloadsOf(events).map((payload) => ({ payload, deltas: [] }));
const parsed = (events: readonly JournalEvent[]): Payload[] =>
  events.map(({ payload }) => JSON.parse(payload ?? '') as Payload);

const [text] = [['To ', 'sea.']];

describe('events as they were delivered', () => {
  test('have the names of their types, wherever these are', () => {
    expect(eventTypeOf('{"type":"keepalive","sequence_number":1}')).toBe('keepalive');
    expect(eventTypeOf('{"sequence_number":1,"type":"keepalive"}')).toBe('keepalive');
    expect(eventTypeOf('{"type": "keepalive"}')).toBe('keepalive');
  });

  test('tell whether they end the stream, and how', () => {
    expect(payloadsOf([...begin(1), completed(1, [])]).map(delivered.endOf)).toEqual([
      undefined,
      undefined,
      'done',
    ]);
    expect(delivered.endOf('{"type":"response.incomplete"}')).toBe('done');
    expect(delivered.endOf('{"type":"response.failed"}')).toBe('error');
  });

  test('tell whose they are', () => {
    const [created = '', delta = ''] = payloadsOf([
      ...begin(1).slice(0, 1),
      message('msg_1', 0, ['x'])[2] as Payload,
    ]);
    expect([delivered.hasIdentity(created), delivered.hasIdentity(delta)]).toEqual([true, false]);
    expect([delivered.idOf(created), delivered.idOf(delta)]).toEqual(['resp_1', undefined]);
  });

  test('say what they said', () => {
    const reader = delivered.reader();
    const said: Delta[] = [];
    let calls = 0;
    const events = [
      ...message('msg_1', 0, text),
      ...call('a', 1, ['{"x":', '1}']),
      ...customCall('b', 2, ['"a', 'ye"']),
    ];
    for (const payload of payloadsOf([...begin(1), ...events, completed(1, [{ type: 'function_call' }])])) {
      const { deltas } = reader.read(payload, calls) ?? { deltas: [] };
      calls += deltas.filter(({ kind }) => kind === 'tool_start').length;
      said.push(...deltas);
    }
    const argumentsOf = (index: number) =>
      said
        .map((delta) => (delta.kind === 'tool_arguments' && delta.index === index ? delta.text : ''))
        .join('');
    expect(said.filter(({ kind }) => kind === 'text')).toHaveLength(2);
    expect(argumentsOf(0)).toBe('{"x":1}');
    expect(JSON.parse(argumentsOf(1))).toBe('"aye"');
    expect(said.find(({ kind }) => kind === 'finish')).toEqual({ kind: 'finish', reason: 'tool_calls' });
  });

  test('of a call are of the last one, if its beginning was not read', () => {
    const [, delta = ''] = payloadsOf(call('a', 4, ['{"x":']));
    expect(delivered.reader().read(delta, 3)).toEqual({
      deltas: [{ kind: 'tool_arguments', index: 2, text: '{"x":' }],
    });
  });

  test.each(['', '[DONE]', '7', '{"choices":[]}'])('are none that look like %j', (payload) => {
    expect(delivered.reader().read(payload, 0)).toBeUndefined();
  });
});

describe('text that was stored without its event', () => {
  test('is replayed as it was', () => {
    const events = payloadsOf([...begin(1), ...message('msg_1', 0, text)]);
    const rebuilder = delivered.rebuilder();
    for (const payload of events.slice(0, 4)) rebuilder.add(payload);
    expect(
      text.map((said) => JSON.parse(rebuilder.payloadOf([{ kind: 'text', text: said }])) as unknown),
    ).toEqual(events.slice(4, 6).map((payload) => JSON.parse(payload) as unknown));
  });
});

describe('the end of an answer that no replica continues', () => {
  const told = [...begin(1), ...message('msg_1', 0, text)];

  test('has the calls that were settled, and ends what was begun', () => {
    const [added, delta] = sent(call('a', 1, ['{"x":']).slice(0, 2)) as [JournalEvent, JournalEvent];
    const deltas: Delta[] = [
      { kind: 'tool_start', index: 0, id: 'call_a', name: 'forecast' },
      { kind: 'tool_arguments', index: 0, text: '{"x":1}' },
      { kind: 'tool_close', index: 0, proof: 3 },
    ];
    const ending = salvagedEnding('responses', [...sent(told), { ...added, deltas }, delta]);
    const types = [
      'function_call_arguments.delta',
      'function_call_arguments.done',
      'output_item.done',
      'completed',
    ];
    expect(parsed(ending).map(({ type }) => type.replace('response.', ''))).toEqual(types);
    expect(parsed(ending)[0]).toMatchObject({ delta: '1}' });
    expect(parsed(ending).at(-1)).toMatchObject({
      response: { id: 'resp_1', status: 'completed', output: [{ id: 'msg_1' }, { arguments: '{"x":1}' }] },
    });
    expect(ending.at(-1)?.deltas).toEqual([{ kind: 'finish', reason: 'tool_calls' }]);
  });

  test('is an error and a failure, which continue the numbers', () => {
    const error = { message: 'lost', type: 'stream_interrupted', holdfast: { cause: 'connection_reset' } };
    const failure = delivered.failure(error, sent(told));
    expect(failure.map((payload) => JSON.parse(payload) as unknown)).toMatchObject([
      { type: 'error', sequence_number: told.length, error },
      {
        type: 'response.failed',
        sequence_number: told.length + 1,
        response: {
          id: 'resp_1',
          created_at: 1_700_000_001,
          error: { code: 'server_error', message: 'lost' },
        },
        error,
      },
    ]);
  });

  test('is only the failure where the error was sent and its replica was lost before the rest', () => {
    const error = { message: 'lost', type: 'stream_interrupted', holdfast: { cause: 'connection_reset' } };
    const [first = ''] = delivered.failure(error, sent(told));
    const rest = delivered.failure(error, [...sent(told), { deltas: [], payload: first }]);
    expect(rest.map((payload) => JSON.parse(payload) as unknown)).toMatchObject([
      { type: 'response.failed', sequence_number: told.length + 1 },
    ]);
  });

  test('is one, too, where nothing was sent', () => {
    const error = { message: 'lost', holdfast: { run_id: 'run_x', stream_id: null, created_at: 7 } };
    const [first = '', last = ''] = delivered.failure(error, []);
    expect(JSON.parse(first)).toMatchObject({ type: 'error', sequence_number: 0 });
    expect(JSON.parse(last)).toMatchObject({
      sequence_number: 1,
      response: { id: 'run_x', created_at: 7, output: [] },
    });
  });
});

test('a failure whose error another replica has sent is sent with that one', () => {
  const response = { id: 'resp_1', object: 'response', status: 'in_progress', output: [] };
  const error = { type: 'stream_interrupted', code: 'stream_interrupted', message: 'the first word on it' };
  const sent = [
    { type: 'response.created', sequence_number: 0, response },
    { type: 'error', sequence_number: 1, error },
  ].map((event) => ({ deltas: [], payload: JSON.stringify(event) }));
  const [failed, ...more] = delivered.failure({ ...error, message: 'another word' }, sent);
  expect(more).toEqual([]);
  expect(JSON.parse(failed ?? '')).toMatchObject({ type: 'response.failed', sequence_number: 2, error });
});
