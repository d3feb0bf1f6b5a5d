import { describe, expect, test } from 'vitest';
import { type Payload, tellResponses } from '../../simulation/responses-told.ts';
import type { SimulationOptions } from '../../simulation/simulate.ts';
import {
  blockStart,
  blockStop,
  end,
  eventsOf,
  input,
  start,
  stop,
  text,
  textBlock,
  textStart,
  toolBlock,
} from './messages-raw.ts';
import { CUT, type RawAnswer, relayRaw } from './raw-relay.ts';
import { begin, call, completed, itemsOf, message, reasoning } from './responses-items.ts';

const TICKET = { id: 'mcp_1', type: 'mcp_call', name: 'create_ticket', server_label: 'desk' };
const SETTLED = { ...TICKET, arguments: '{"title":"kelp"}', output: 'ticket 7', status: 'completed' };
const place = (output_index: number) => ({ item_id: 'mcp_1', output_index });

const createTicket = (output_index: number): Payload[] => [
  {
    type: 'response.output_item.added',
    output_index,
    item: { ...TICKET, arguments: '', status: 'in_progress' },
  },
  { type: 'response.mcp_call.in_progress', ...place(output_index) },
  { type: 'response.mcp_call_arguments.done', ...place(output_index), arguments: SETTLED.arguments },
  { type: 'response.mcp_call.completed', ...place(output_index) },
  { type: 'response.output_item.done', output_index, item: SETTLED },
];

const answer = (attempt: number, ...items: readonly Payload[][]): Payload[] => {
  const said = items.flat();
  return [...begin(attempt), ...said, completed(attempt, itemsOf(said))];
};
const outputOf = (events: readonly Payload[]) => {
  const response = events.at(-1)?.response as { output: { type: string; id: string }[] } | undefined;
  return response?.output ?? [];
};
const inputOf = (asked: readonly Record<string, unknown>[]) => asked[0]?.input as Record<string, unknown>[];

describe('a ticket that was made on /v1/responses', () => {
  const made = [...begin(1), ...message('msg_1', 0, ['Let me file that.']), ...createTicket(1)];

  test('is given back with the text before it, and the answer continues from there', async () => {
    const { outcome, asked, stream, events } = await tellResponses([
      made,
      answer(2, message('msg_2', 0, ['It is ticket 7.'])),
    ]);
    expect(outcome).toBe('recovered');
    expect(inputOf(asked)).toMatchObject([
      { role: 'user', content: 'Tell me.' },
      { type: 'message', role: 'assistant', content: 'Let me file that.' },
      SETTLED,
      { type: 'message', role: 'user', content: expect.stringContaining('do not run it again') as string },
    ]);
    expect(asked).toHaveLength(1);
    expect(stream).toMatchObject({ violations: [], text: 'Let me file that.It is ticket 7.', done: true });
    expect(outputOf(events).map(({ type }) => type)).toEqual(['message', 'mcp_call', 'message']);
  });

  test('is given back although nothing was said before it', async () => {
    const { asked, outcome } = await tellResponses([
      [...begin(1), ...createTicket(0)],
      answer(2, message('msg_2', 0, ['Done.'])),
    ]);
    expect(outcome).toBe('recovered');
    expect(inputOf(asked).map(({ type, role }) => type ?? role)).toEqual(['user', 'mcp_call', 'message']);
  });

  test('is given back by every attempt, and its place is between the texts', async () => {
    const { asked, stream } = await tellResponses([
      made,
      [...begin(2), ...message('msg_2', 0, ['It is ']).slice(0, 3)],
      answer(3, message('msg_3', 0, ['ticket 7.'])),
    ]);
    expect((asked.at(1)?.input as object[] | undefined)?.slice(1, -1)).toMatchObject([
      { content: 'Let me file that.' },
      SETTLED,
      { content: 'It is ' },
    ]);
    expect(stream.text).toBe('Let me file that.It is ticket 7.');
  });

  test('satisfies a choice that forces a tool, which would have it made again', async () => {
    const { asked, outcome } = await tellResponses([made, answer(2, message('msg_2', 0, ['Done.']))], {
      asked: { tool_choice: { type: 'mcp', server_label: 'desk' } },
    });
    expect(outcome).toBe('recovered');
    expect(asked).toMatchObject([{ tool_choice: 'auto' }]);
  });

  test('leads to a document that was asked for, if none was begun', async () => {
    const { outcome, stream } = await tellResponses(
      [[...begin(1), ...createTicket(0)], answer(2, message('msg_2', 0, ['{"ticket":7}']))],
      { asked: { text: { format: { type: 'json_object' } } } },
    );
    expect(outcome).toBe('recovered');
    expect(stream.text).toBe('{"ticket":7}');
  });

  test('is the end of the answer where a document was begun: it cannot be continued', async () => {
    const begun = [...begin(1), ...createTicket(0), ...message('msg_1', 1, ['{"tick']).slice(0, 3)];
    const { outcome, stream, asked } = await tellResponses([begun, answer(2)], {
      asked: { text: { format: { type: 'json_object' } } },
    });
    expect(outcome).toBe('failed');
    expect(asked).toEqual([]);
    expect(stream.error).toMatchObject({
      code: 'tools_not_carried',
      message: expect.stringContaining("'create_ticket'") as string,
      holdfast: {
        retryable: false,
        parts: [
          { type: 'text', text: '{"tick' },
          { type: 'provider_tool', id: 'mcp_1', name: 'create_ticket', result: 'settled', items: [SETTLED] },
        ],
      },
    });
  });

  test('is not made by another provider, which does not know it', async () => {
    const route: SimulationOptions = { others: ['openai'], recovery: { same_target_retries: 0 } };
    const { outcome, asked } = await tellResponses([made, answer(2, message('msg_2', 0, ['Done.']))], route);
    expect(outcome).toBe('recovered');
    expect(asked).toHaveLength(1);
  });

  test('is in the error of an answer that is given up for another reason', async () => {
    const { outcome, stream } = await tellResponses([made], { recovery: { max_attempts: 1 } });
    expect(outcome).toBe('failed');
    expect(stream.error).toMatchObject({ code: 'stream_interrupted', holdfast: { retryable: false } });
    expect(JSON.stringify(stream.error)).toContain('ticket 7');
  });

  test('is not made again by a model that thinks before it makes another one', async () => {
    const again = { ...SETTLED, id: 'mcp_2', output: 'ticket 8' };
    const second = createTicket(1).map((event) => ({
      ...event,
      ...(event.item !== undefined && {
        item: { ...(event.item as object), ...(event.type.endsWith('done') ? again : { id: 'mcp_2' }) },
      }),
      ...(event.item_id !== undefined && { item_id: 'mcp_2' }),
    }));
    const { events, stream } = await tellResponses([
      [...begin(1), ...message('msg_1', 0, ['Let me file that.']).slice(0, 3)],
      answer(2, reasoning('rs_2', 0, []), second, message('msg_2', 2, ['Done.'])),
    ]);
    expect(stream.violations).toEqual([]);
    // The seam held back the text, not the tool.
    expect(outputOf(events)).toMatchObject([{ id: 'msg_1' }, again, { type: 'message' }]);
  });
});

describe('a tool that was running when the connection was lost', () => {
  test.each([1, 2, 3, 4])('is not run again after %i of its events', async (events) => {
    const cut = [...begin(1), ...createTicket(0).slice(0, events)];
    const { outcome, asked, stream } = await tellResponses([cut, answer(2, message('msg_2', 0, ['Done.']))]);
    expect(outcome).toBe('failed');
    expect(asked).toEqual([]);
    expect(stream.error).toMatchObject({
      code: 'tool_running',
      message: expect.stringContaining("'create_ticket'") as string,
      holdfast: {
        retryable: false,
        parts: [{ type: 'provider_tool', name: 'create_ticket', result: 'unknown' }],
      },
    });
  });

  test('is told beside the calls that are the answer as one whose result is not known', async () => {
    const cut = [...begin(1), ...call('a', 0, ['{}']), ...createTicket(1).slice(0, 3)];
    const { outcome, events } = await tellResponses([cut]);
    expect(outcome).toBe('salvaged');
    expect(outputOf(events)).toMatchObject([
      { type: 'function_call' },
      { type: 'mcp_call', status: 'incomplete', error: expect.stringContaining('not known') as string },
    ]);
  });
});

const ask = (answers: readonly RawAnswer[], request: object = {}, more: Partial<SimulationOptions> = {}) =>
  relayRaw(answers, { wire: 'messages', request: { model: 'claude-opus-4-6', ...request }, ...more });

describe('a tool that was run on /v1/messages', () => {
  const USE = {
    type: 'mcp_tool_use',
    id: 'mcptoolu_1',
    name: 'create_ticket',
    server_name: 'desk',
    input: {},
  };
  const RESULT = {
    type: 'mcp_tool_result',
    tool_use_id: 'mcptoolu_1',
    is_error: false,
    content: [{ type: 'text', text: 'ticket 7' }],
  };
  const use = [blockStart(1, USE), input(1, '{"title":'), input(1, '"kelp"}'), blockStop(1)];
  const made = [
    start(),
    ...textBlock(0, 'Let me file that.'),
    ...use,
    blockStart(2, RESULT),
    blockStop(2),
    CUT,
  ];
  const blocks = [{ type: 'text', text: 'Let me file that.' }, { ...USE, input: { title: 'kelp' } }, RESULT];
  const rest = (said: string) => [start({ id: 'msg_2' }), ...textBlock(0, said), end('end_turn'), stop];

  test('is given back in the turn of the model, before a message of the user', async () => {
    const { requests, stream, client } = await ask([made, rest('It is ticket 7.')]);
    expect(requests[1]?.messages).toMatchObject([
      { role: 'user' },
      { role: 'assistant', content: blocks },
      { role: 'user', content: expect.stringContaining('`create_ticket`') as string },
    ]);
    expect(stream).toMatchObject({ violations: [], text: 'Let me file that.It is ticket 7.', done: true });
    expect(
      eventsOf(client.body).flatMap(({ content_block: block }) => (block as { type: string })?.type ?? []),
    ).toEqual(['text', 'mcp_tool_use', 'mcp_tool_result', 'text']);
  });

  test('comes before the text that was cut after it, which a model continues from at the very token', async () => {
    const cut = [...made.slice(0, -1), textStart(3), text(3, 'It is number seven of ni'), CUT];
    const { requests, stream } = await ask([cut, rest('ne.')], { model: 'claude-sonnet-4-5' });
    expect(requests[1]?.messages).toMatchObject([
      { role: 'user' },
      { role: 'assistant', content: [...blocks, { type: 'text', text: 'It is number seven of ni' }] },
    ]);
    expect(stream.text).toBe('Let me file that.It is number seven of nine.');
  });

  test('goes behind the use of a paused turn, which the request brings', async () => {
    const paused = [
      { role: 'user', content: 'File it.' },
      { role: 'assistant', content: [{ ...USE, input: { title: 'kelp' } }] },
    ];
    const first = [start(), blockStart(0, RESULT), blockStop(0), ...textBlock(1, 'It is '), CUT];
    const { requests, stream } = await ask([first, rest('ticket 7.')], { messages: paused });
    expect(requests[1]?.messages).toMatchObject([
      { role: 'user' },
      { role: 'assistant', content: [paused[1]?.content[0], RESULT, { type: 'text', text: 'It is ' }] },
      { role: 'user', content: expect.stringContaining('do not run it again') as string },
    ]);
    // The use is in the request's own message.
    expect(stream).toMatchObject({ violations: ['a result without its use'], text: 'It is ticket 7.' });
  });

  describe('at which a turn was paused', () => {
    const messages = [
      { role: 'user', content: 'File it.' },
      { role: 'assistant', content: [{ ...USE, input: { title: 'kelp' } }] },
    ];

    test('runs from the beginning of the message on: cut before its result, it is not asked for again', async () => {
      const { requests, stream, journal } = await ask([[start(), CUT], rest('ticket 7.')], { messages });
      expect(requests).toHaveLength(1);
      expect(stream.error).toMatchObject({
        code: 'tool_running',
        holdfast: {
          retryable: false,
          parts: [{ type: 'provider_tool', id: USE.id, name: USE.name }],
        },
      });
      expect(journal).toMatchObject({ providerTools: [{ id: USE.id, state: 'running' }] });
    });

    test('has not run where the message never began', async () => {
      const whole = [start(), blockStart(0, RESULT), blockStop(0), ...rest('Filed.').slice(1)];
      const { requests } = await ask([[CUT], whole], { messages });
      expect(requests).toHaveLength(2);
    });

    test('is not one that the paused turn has the result of', async () => {
      const settled = [messages[0], { role: 'assistant', content: [{ ...USE, input: {} }, RESULT] }];
      const { requests, stream } = await ask([[start(), CUT], rest('Filed.')], { messages: settled });
      expect(requests).toHaveLength(2);
      expect(stream.text).toBe('Filed.');
    });
  });

  test.each([
    ['none', undefined, 'container_1'],
    [
      'skills for one',
      { skills: [{ skill_id: 'pptx' }] },
      { id: 'container_1', skills: [{ skill_id: 'pptx' }] },
    ],
  ])(
    'is gone on from in the container in which it ran, where the client named %s',
    async (_, container, named) => {
      const [, ...after] = made;
      const first = [
        start({ container: { id: 'container_1', expires_at: '2026-11-23T00:00:00Z' } }),
        ...after,
      ];
      const { requests } = await ask([first, rest('Done.')], container && { container });
      expect(requests[1]?.container).toEqual(named);
    },
  );

  test.each(['any', 'tool'])('satisfies a choice of %s, which would have it run again', async (type) => {
    const choice = {
      type,
      ...(type === 'tool' && { name: 'create_ticket' }),
      disable_parallel_tool_use: true,
    };
    const { requests } = await ask([made, rest('Done.')], { tool_choice: choice });
    expect(requests[1]?.tool_choice).toEqual({ type: 'auto', disable_parallel_tool_use: true });
  });

  test('has a result that says so where it has none of its own, and the calls beside it are the answer', async () => {
    const cut = [start(), ...toolBlock(0, 'toolu_1', '{"port":"Brest"}'), ...use, CUT];
    const { outcome, client, stream } = await ask([cut]);
    expect(outcome).toBe('salvaged');
    expect(stream.violations).toEqual([]);
    expect(eventsOf(client.body).findLast(({ type }) => type === 'content_block_start')).toMatchObject({
      content_block: { type: 'mcp_tool_result', tool_use_id: 'mcptoolu_1', is_error: true },
    });
  });

  test('has none where it waits for a call that it has made itself', async () => {
    const program = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'code_execution', input: {} };
    const caller = { type: 'code_execution_20250825', tool_id: 'srvtoolu_1' };
    const cut = [
      start(),
      blockStart(0, program),
      input(0, '{"code":"tides()"}'),
      blockStop(0),
      blockStart(1, { type: 'tool_use', id: 'toolu_1', name: 'tides', input: {}, caller }),
      input(1, '{}'),
      blockStop(1),
      CUT,
    ];
    const { outcome, client } = await ask([cut]);
    expect(outcome).toBe('salvaged');
    expect(client.body).not.toContain('code_execution_tool_result');
  });
});
