import { describe, expect, test } from 'vitest';
import type { Delta } from '../../../../src/plans/delta.ts';
import { ResponsesReader, type ResponsesReading } from '../../../../src/proxy/wires/responses/reader.ts';
import type { Payload } from '../../../simulation/responses-told.ts';
import { begin, call, completed, customCall, message, reasoning, responseOf } from '../responses-items.ts';

function reader(background?: 'client' | 'operator') {
  let calls = 0;
  const own = new ResponsesReader(() => calls++, background);
  let number = 0;
  const read = (payload: Payload, event?: string): ResponsesReading =>
    own.read({
      data: JSON.stringify({ sequence_number: number++, ...payload }),
      ...(event && { event }),
    } as never);
  return {
    own,
    read,
    deltas: (events: readonly Payload[]) => events.flatMap((each) => deltasIn(read(each))),
  };
}

const deltasIn = (event: ResponsesReading): readonly Delta[] => {
  if (event.kind !== 'answer') throw new Error(`it is no answer but ${event.kind}`);
  return event.deltas;
};
const raw = (data: string, event?: string) =>
  new ResponsesReader(() => 0).read({ data, ...(event && { event }) } as never);

describe('what is said', () => {
  test('text and thoughts, piece by piece', () => {
    const { deltas } = reader();
    expect(
      deltas([
        ...begin(1),
        ...reasoning('rs_1', 0, ['Hm', ', so.']),
        ...message('msg_1', 1, ['To ', 'sea.']),
      ]),
    ).toEqual([
      { kind: 'reasoning', text: 'Hm' },
      { kind: 'reasoning', text: ', so.' },
      { kind: 'text', text: 'To ' },
      { kind: 'text', text: 'sea.' },
    ]);
  });

  test('text that came in no pieces, or in too few, when it is over', () => {
    const { deltas } = reader();
    const said = message('msg_1', 0, ['To ', 'sea.']).filter(({ delta }) => delta !== 'sea.');
    expect(deltas(said)).toEqual([
      { kind: 'text', text: 'To ' },
      { kind: 'text', text: 'sea.' },
    ]);
  });

  test('a refusal', () => {
    const { deltas } = reader();
    const place = { item_id: 'msg_1', output_index: 0, content_index: 0 };
    expect(deltas([{ type: 'response.refusal.delta', ...place, delta: 'No.' }])).toEqual([
      { kind: 'refusal', text: 'No.' },
    ]);
  });

  test('calls, closed when their arguments are', () => {
    const { deltas } = reader();
    expect(deltas([...call('a', 0, ['{"x":', '1}']), ...call('b', 1, [])])).toEqual([
      { kind: 'tool_start', index: 0, id: 'call_a', name: 'forecast' },
      { kind: 'tool_arguments', index: 0, text: '{"x":' },
      { kind: 'tool_arguments', index: 0, text: '1}' },
      { kind: 'tool_close', index: 0, proof: 3 },
      { kind: 'tool_start', index: 1, id: 'call_b', name: 'forecast' },
      { kind: 'tool_close', index: 1, proof: 3 },
    ]);
  });

  test('calls whose arguments came only with their end', () => {
    const { deltas } = reader();
    const [added, , ...end] = call('a', 0, ['{"x":1}']);
    expect(deltas([added as Payload, ...end])).toEqual([
      { kind: 'tool_start', index: 0, id: 'call_a', name: 'forecast' },
      { kind: 'tool_arguments', index: 0, text: '{"x":1}' },
      { kind: 'tool_close', index: 0, proof: 3 },
    ]);
    expect(reader().deltas(end.slice(1))).toHaveLength(3);
  });

  test('calls of free text, as a JSON string', () => {
    const { deltas } = reader();
    const said = deltas(customCall('a', 0, ['say "', 'aye"\n']));
    const text = said.map((delta) => (delta.kind === 'tool_arguments' ? delta.text : '')).join('');
    expect(JSON.parse(text)).toBe('say "aye"\n');
    expect(said.at(-1)).toEqual({ kind: 'tool_close', index: 0, proof: 3 });
  });

  test('what else a client has to act on, once it is whole', () => {
    const { deltas } = reader();
    const item = { id: 'ls_1', type: 'local_shell_call', call_id: 'call_a', status: 'in_progress' };
    const done = { ...item, status: 'completed', action: { type: 'exec', command: ['ls'] } };
    expect(
      deltas([
        { type: 'response.output_item.added', output_index: 0, item },
        { type: 'response.output_item.done', output_index: 0, item: done },
      ]),
    ).toEqual([
      { kind: 'tool_start', index: 0, id: 'call_a', name: 'local_shell_call' },
      { kind: 'tool_arguments', index: 0, text: JSON.stringify(done) },
      { kind: 'tool_close', index: 0, proof: 3 },
    ]);
  });

  test.each([
    ['web_search', { type: 'web_search_call', action: {} }],
    ['create_ticket', { type: 'mcp_call', name: 'create_ticket', output: 'ticket 7' }],
    ['code_interpreter', { type: 'code_interpreter_call', outputs: [] }],
    ['image_generation', { type: 'image_generation_call', result: 'AA==' }],
    ['thing_of_the_future', { type: 'thing_of_the_future' }],
  ])('the provider runs %s from its announcement until its result has come', (name, done) => {
    const item = { id: 'x', ...done };
    const { deltas } = reader();
    const place = { output_index: 0 };
    const added = { type: 'response.output_item.added', ...place, item: { id: 'x', type: done.type, name } };
    const start = { kind: 'provider_tool_start', id: 'x', name };
    expect(deltas([added])).toEqual([start]);
    expect(deltas([{ type: `response.${done.type}.in_progress`, item_id: 'x', ...place }])).toEqual([]);
    expect(deltas([{ type: 'response.output_item.done', ...place, item }])).toEqual([
      { kind: 'provider_tool_end', id: 'x', name, items: [item] },
    ]);
  });

  test.each([
    ['shell', { type: 'shell_call', environment: { type: 'container_reference' } }, 'shell_call_output'],
    ['tool_search', { type: 'tool_search_call', execution: 'server' }, 'tool_search_output'],
  ])('a %s is settled with the item of its result', (name, told, type) => {
    const use = { id: 'x', call_id: 'call_x', ...told };
    const result = { id: 'y', call_id: 'call_x', type };
    const { deltas } = reader();
    const done = 'response.output_item.done';
    expect(deltas([{ type: done, output_index: 0, item: use }])).toEqual([
      { kind: 'provider_tool_start', id: 'x', name },
    ]);
    expect(deltas([{ type: 'response.output_item.added', output_index: 1, item: result }])).toEqual([]);
    expect(deltas([{ type: done, output_index: 1, item: result }])).toEqual([
      { kind: 'provider_tool_end', id: 'x', name, items: [use, result] },
    ]);
  });

  test('a tool that was never announced runs from its first event on', () => {
    const event = { type: 'response.mcp_call_arguments.delta', item_id: 'x', output_index: 0, delta: '{' };
    expect(reader().deltas([event])).toEqual([{ kind: 'provider_tool_start', id: 'x', name: 'mcp' }]);
  });

  test('nothing by a list of tools, which comes with the first tool that rests on it', () => {
    const { deltas } = reader();
    const done = (output_index: number, item: object) => ({
      type: 'response.output_item.done',
      output_index,
      item,
    });
    const list = { id: 'l', type: 'mcp_list_tools', tools: [] };
    const call = { id: 'x', type: 'mcp_call', name: 'create_ticket' };
    expect(deltas([done(0, list)])).toEqual([]);
    expect(deltas([done(1, call)]).at(-1)).toMatchObject({ items: [list, call] });
    expect(deltas([done(2, { ...call, id: 'y' })]).at(-1)).toMatchObject({ items: [{ id: 'y' }] });
  });

  describe('the result of a tool is given back', () => {
    const done = (output_index: number, item: object) => ({
      type: 'response.output_item.done',
      output_index,
      item,
    });
    const tool = { id: 'mcp_1', type: 'mcp_call', name: 'create_ticket', output: 'ticket 7' };
    const thought = { id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: 'sealed' };

    test('with the sealed reasoning before it, without which it is refused', () => {
      expect(
        reader()
          .deltas([done(0, thought), done(1, tool)])
          .at(-1),
      ).toMatchObject({
        items: [thought, tool],
      });
    });

    test('without reasoning that led to a message', () => {
      const said = message('msg_1', 1, ['So.']);
      expect(
        reader()
          .deltas([done(0, thought), ...said, done(2, tool)])
          .at(-1),
      ).toMatchObject({
        items: [tool],
      });
    });

    test('under another id where the reasoning before it cannot be given back', () => {
      const { encrypted_content: _, ...open } = thought;
      const last = reader()
        .deltas([done(0, open), done(1, tool)])
        .at(-1) as unknown as { items: { id: string }[] };
      expect(last.items).toMatchObject([{ ...tool, id: expect.stringMatching(/^mcp_[0-9a-f]{48}$/) }]);
      expect(last.items[0]?.id).not.toBe(tool.id);
    });
  });

  test('a call that was cut, which is none', () => {
    const { deltas } = reader();
    const [added, delta, , done] = call('a', 0, ['{"x":']) as [Payload, Payload, Payload, Payload];
    const item = { ...(done.item as object), status: 'incomplete' };
    expect(deltas([added, delta, { ...done, item }]).at(-1)).toEqual({ kind: 'tool_cancel', index: 0 });
  });
});

describe('how it ends', () => {
  test.each([
    ['stop', completed(1, [])],
    ['length', incomplete('max_output_tokens')],
    ['content_filter', incomplete('content_filter')],
    ['something_else', incomplete('something_else')],
    ['cancelled', { type: 'response.cancelled', response: responseOf(1, 'cancelled') }],
  ])('with %s', (reason, event) => {
    const read = reader().read(event);
    expect(read).toMatchObject({ kind: 'answer', last: true });
    expect(deltasIn(read)[0]).toEqual({ kind: 'finish', reason });
  });

  test('with calls, and with a report', () => {
    const { deltas } = reader();
    expect(deltas([...call('a', 0, ['{}']), completed(1, [])]).slice(-2)).toEqual([
      { kind: 'finish', reason: 'tool_calls' },
      {
        kind: 'usage',
        usage: {
          prompt_tokens: 5,
          completion_tokens: 9,
          total_tokens: 14,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens_details: { reasoning_tokens: 0 },
        },
      },
    ]);
  });

  test('with a reason that is a failure', () => {
    expect(reader().read(incomplete('overloaded_error'))).toEqual({
      kind: 'bad_finish',
      reason: 'overloaded_error',
      status: 529,
    });
  });

  test('as other wires do, which is no end', () => {
    expect(raw('[DONE]')).toEqual({ kind: 'done' });
  });
});

describe('what goes wrong', () => {
  const failure = { code: 'rate_limit_exceeded', message: 'Slow down.' };
  test.each<[string, object, string | undefined]>([
    [
      'a response that failed',
      { type: 'response.failed', response: responseOf(1, 'failed', { error: failure }) },
      undefined,
    ],
    [
      'one that ended, and failed',
      { type: 'response.completed', response: responseOf(1, 'failed', { error: failure }) },
      undefined,
    ],
    ['a flat error', { type: 'error', ...failure, param: null }, undefined],
    ['a nested error', { type: 'error', error: { type: 'x', ...failure } }, undefined],
    ['an error of a gateway', { error: failure }, undefined],
    ['a named event', { error: failure }, 'error'],
  ])('%s', (_, payload, name) => {
    const event = raw(JSON.stringify(payload), name);
    expect(event).toMatchObject({
      kind: 'error_event',
      error: {
        words: expect.arrayContaining(['rate_limit_exceeded']) as string[],
        message: failure.message,
      },
    });
  });

  test('nothing is known of it', () => {
    expect(raw('{"type":"response.failed"}')).toEqual({
      kind: 'error_event',
      error: { words: [], message: '' },
    });
    expect(raw('it broke', 'error')).toEqual({
      kind: 'error_event',
      error: { words: [], message: 'it broke' },
    });
  });

  test('an event that is none', () => {
    expect(raw('{"type":"response.output_text.del')).toEqual({ kind: 'malformed' });
    expect(raw('7')).toEqual({ kind: 'malformed' });
    expect(raw('{"type":7}')).toMatchObject({ kind: 'answer', deltas: [] });
  });

  test.each([
    ['text that is none', '{"type":"response.output_text.delta","output_index":0,"delta":{"text":"x"}}'],
    ['text of no item', '{"type":"response.output_text.delta","delta":"x"}'],
    [
      'arguments that are no text',
      '{"type":"response.function_call_arguments.delta","output_index":0,"delta":[1]}',
    ],
  ])('an event that says %s', (_, event) => {
    expect(raw(event)).toEqual({ kind: 'malformed' });
  });

  test.each([
    ['of an unknown type', '{"type":"response.tide.delta","delta":{"height":3}}', undefined, 'answer'],
    ['with no piece', '{"type":"response.output_text.delta","output_index":0}', undefined, 'answer'],
    ['without data', '', undefined, 'nothing'],
    ['that keeps the connection open', 'still here', 'keepalive', 'nothing'],
  ])('an event %s says nothing', (_, event, name, kind) => {
    expect(raw(event, name)).toMatchObject({ kind });
  });
});

describe('where it can be come back to', () => {
  test('after the last event, of an answer that continues in the background', () => {
    const { own, read } = reader('client');
    expect(own.resume_path).toBeUndefined();
    for (const event of begin(1)) read(event);
    read({ type: 'keepalive' });
    expect(own.answer_id).toBe('resp_1');
    expect(own.resume_path).toBe('/responses/resp_1?stream=true&starting_after=2');
    read({ type: 'error', code: 'server_error', message: 'no more' });
    expect(own.resume_path).toBeUndefined();
  });

  test('of one that the operator has made so: it looks as the client asked for it, and can be cancelled until it has ended', () => {
    const { own, read } = reader('operator');
    const background = { background: true };
    const shownOf = (event: ResponsesReading) =>
      event.kind === 'answer' ? (JSON.parse(event.payload) as Payload) : undefined;
    const created = { type: 'response.created', response: responseOf(1, 'queued', background) };
    expect(shownOf(read(created))).toMatchObject({ response: { background: false, status: 'in_progress' } });
    const queued = { type: 'response.queued', response: responseOf(1, 'queued', background) };
    const inProgress = {
      type: 'response.in_progress',
      response: { background: false, status: 'in_progress' },
    };
    expect(shownOf(read(queued))).toMatchObject(inProgress);
    expect(own.resume_path).toBe('/responses/resp_1?stream=true&starting_after=1');
    expect(own.cancel_path).toBe('/responses/resp_1/cancel');
    const completed = { type: 'response.completed', response: responseOf(1, 'completed', background) };
    expect(shownOf(read(completed))).toMatchObject({ response: { background: false, status: 'completed' } });
    expect(own.cancel_path).toBeUndefined();
  });

  test('one that the client has asked for is not cancelled', () => {
    const { own, read } = reader('client');
    for (const event of begin(1)) read(event);
    expect(own.cancel_path).toBeUndefined();
  });

  test('nowhere, of any other', () => {
    const { own, read } = reader();
    for (const event of begin(1)) read(event);
    expect(own.resume_path).toBeUndefined();
  });
});

function incomplete(reason: string): Payload {
  return {
    type: 'response.incomplete',
    response: responseOf(1, 'incomplete', { incomplete_details: { reason } }),
  };
}
