import { describe, expect, test } from 'vitest';
import type { ChatRequest } from '../../../src/proxy/wires/common/request.ts';
import { signatureOf } from '../../provider/wires/messages-events.ts';
import type { SimulationOptions } from '../../simulation/simulate.ts';
import {
  blockDelta,
  blockStart,
  blockStop,
  end,
  event,
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
  toolBlock,
  toolStart,
} from './messages-raw.ts';
import { CUT, PATIENT_CLOCKS, type RawAnswer, relayRaw } from './raw-relay.ts';

const ask = (
  answers: readonly RawAnswer[],
  request: Partial<ChatRequest> = {},
  more: Partial<SimulationOptions> = {},
) => relayRaw(answers, { wire: 'messages', request: { model: 'claude-opus-4-6', ...request }, ...more });

const SEARCH = blockStart(1, { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} });
const RESULT = {
  type: 'web_search_tool_result',
  tool_use_id: 'srvtoolu_1',
  content: [{ type: 'web_search_result', url: 'https://kelp.example' }],
};
const CITATION = {
  type: 'citations_delta',
  citation: { type: 'web_search_result_location', url: 'https://kelp.example' },
};
const TIDES = {
  type: 'function',
  function: {
    name: 'tides',
    parameters: { type: 'object', properties: { port: { type: 'string' } }, required: ['port'] },
  },
} as const;
const said = (body: string, type: string) => eventsOf(body).filter((each) => each.type === type);

describe('an answer without a fault', () => {
  test.each<[string, string[]]>([
    [
      'text',
      [start(), textStart(0), ping, text(0, 'Kelp'), text(0, ' holds.'), blockStop(0), end('end_turn'), stop],
    ],
    ['nothing at all', [start(), end('end_turn', { output_tokens: 0 }), stop]],
    ['an empty block', [start(), textStart(0), blockStop(0), end('end_turn'), stop]],
    [
      'thinking and text',
      [
        start(),
        thinkingStart(0),
        ping,
        thinking(0, 'So.'),
        signature(0, 'c2ln'),
        blockStop(0),
        ...textBlock(1, 'Kelp.'),
        end('end_turn'),
        stop,
      ],
    ],
    [
      'thinking that is not shown',
      [
        start(),
        thinkingStart(0),
        signature(0, 'c2ln'),
        blockStop(0),
        ...textBlock(1, 'Kelp.'),
        end('end_turn'),
        stop,
      ],
    ],
    [
      'thinking that is redacted',
      [
        start(),
        blockStart(0, { type: 'redacted_thinking', data: 'xyz' }),
        blockStop(0),
        ...textBlock(1, 'Kelp.'),
        end('end_turn'),
        stop,
      ],
    ],
    [
      'a search, text in several blocks, citations and an event of tomorrow',
      [
        start(),
        ...textBlock(0, 'Let me see.'),
        SEARCH,
        input(1, '{"query":'),
        input(1, ' "kelp"}'),
        blockStop(1),
        ping,
        blockStart(2, RESULT),
        blockStop(2),
        blockStart(3, { type: 'text', text: '', citations: [] }),
        blockDelta(3, CITATION),
        text(3, 'Kelp holds.'),
        blockStop(3),
        event({ type: 'tomorrow', index: 'none' }),
        ...textBlock(4, 'Fast.'),
        end('end_turn', {
          input_tokens: 400,
          output_tokens: 40,
          server_tool_use: { web_search_requests: 1 },
        }),
        stop,
      ],
    ],
    [
      'a pause of a tool that the provider runs',
      [
        start(),
        SEARCH.replace('"index":1', '"index":0'),
        input(0, '{}'),
        blockStop(0),
        end('pause_turn'),
        stop,
      ],
    ],
    [
      'thinking between blocks',
      [
        start(),
        ...textBlock(0, 'Hm.'),
        thinkingStart(1),
        thinking(1, 'So.'),
        thinking(1, ' Yes.'),
        signature(1, 'c2ln'),
        blockStop(1),
        ...textBlock(2, 'Kelp.'),
        end('end_turn'),
        stop,
      ],
    ],
  ])('comes as the bytes that came: %s', async (_, answer) => {
    const run = await ask([answer]);
    expect(run.client.body).toBe(answer.join(''));
    expect(run.outcome).toBe('complete');
    expect(run.journal.seq).toBe(answer.length);
  });

  test('a call comes when it is whole, in the standard form', async () => {
    const pieces = [
      toolStart(1, 'toolu_1', { caller: { type: 'direct' } }),
      input(1, '{"port":'),
      input(1, ' "Brest"}'),
      blockStop(1),
    ];
    const run = await ask([[start(), ...textBlock(0, 'So.'), ...pieces, end('tool_use'), stop]]);
    expect(eventsOf(run.client.body).slice(4)).toEqual([
      {
        type: 'content_block_start',
        index: 1,
        content_block: {
          type: 'tool_use',
          id: 'toolu_1',
          name: 'tides',
          input: {},
          caller: { type: 'direct' },
        },
      },
      {
        type: 'content_block_delta',
        index: 1,
        delta: { type: 'input_json_delta', partial_json: '{"port": "Brest"}' },
      },
      { type: 'content_block_stop', index: 1 },
      {
        type: 'message_delta',
        delta: { stop_reason: 'tool_use', stop_sequence: null },
        usage: { output_tokens: 40 },
      },
      { type: 'message_stop' },
    ]);
    expect(run.stream.violations).toEqual([]);
  });

  test('arguments that came with the beginning of a call follow it', async () => {
    const call = [toolStart(0, 'toolu_1', { input: { port: 'Brest' } }), blockStop(0)];
    const { stream } = await ask([[start(), ...call, end('tool_use'), stop]]);
    expect(stream).toMatchObject({
      violations: [],
      toolCalls: [{ id: 'toolu_1', arguments: '{"port":"Brest"}' }],
    });
  });

  test.each([
    'end_turn',
    'max_tokens',
    'stop_sequence',
    'pause_turn',
    'refusal',
    'model_context_window_exceeded',
    'a_reason_of_tomorrow',
  ])('may end with %s', async (reason) => {
    const last = end(reason, { output_tokens: 7 }, { stop_sequence: 'END', stop_details: null });
    const { client, outcome } = await ask([[start(), ...textBlock(0, 'Kelp.'), last, stop]]);
    expect(client.body.endsWith(last + stop)).toBe(true);
    expect(outcome).toBe('complete');
  });

  test.each<[string, string[], number]>([
    [
      'before the reason',
      [event({ type: 'message_delta', delta: {}, usage: { output_tokens: 3 } }), end('end_turn')],
      40,
    ],
    ['without anything', [event({ type: 'message_delta', delta: {} }), end('end_turn')], 40],
    [
      'after the reason',
      [end('end_turn', {}), event({ type: 'message_delta', delta: {}, usage: { output_tokens: 3 } })],
      3,
    ],
  ])('a report %s makes no second end', async (_, ends, output_tokens) => {
    const { client, stream } = await ask([[start(), ...textBlock(0, 'Kelp.'), ...ends, stop]]);
    expect(stream.violations).toEqual([]);
    expect(said(client.body, 'message_delta')).toMatchObject([
      { delta: { stop_reason: 'end_turn' }, usage: { output_tokens } },
    ]);
  });

  test('what is too long to be held back comes as it comes', async () => {
    const code = Array.from({ length: 12 }, () => input(0, 'x'.repeat(100_000)));
    const use = [SEARCH.replace('"index":1', '"index":0'), ...code];
    const { client } = await ask([[start(), ...use, CUT], [CUT], [CUT], [CUT]]);
    expect(client.body).toContain(use.join(''));
    expect(eventsOf(client.body).at(-1)).toMatchObject({ type: 'error' });
  });

  test('a tool that the provider runs may take its time', async () => {
    const searching = [SEARCH.replace('"index":1', '"index":0'), input(0, '{}'), blockStop(0)];
    const waiting = Array.from({ length: 8 }, () => [30_000, ping]).flat();
    const found = [blockStart(1, RESULT), blockStop(1), ...textBlock(2, 'Kelp.'), end('end_turn'), stop];
    const run = await ask([[start(), ...searching, ...waiting, ...found]]);
    expect(run.requests).toHaveLength(1);
    expect(run.stream).toMatchObject({ text: 'Kelp.', done: true });
  });
});

describe('what the model cannot continue', () => {
  test('arguments that a limit has cut: the call is left out, and what follows takes its place', async () => {
    const cut = [toolStart(1, 'toolu_1'), input(1, '{"port": "Br'), blockStop(1)];
    const { stream, client } = await ask([
      [start(), ...textBlock(0, 'So.'), ...cut, end('max_tokens'), stop],
    ]);
    expect(stream).toMatchObject({ violations: [], toolCalls: [], finish: 'length', done: true });
    expect(eventsOf(client.body).at(-2)).toMatchObject({ delta: { stop_reason: 'max_tokens' } });
  });

  test('a search that was cut is not shown, and its place is free', async () => {
    const cut = [start(), ...textBlock(0, 'Let me see what there is.'), SEARCH, input(1, '{"query'), CUT];
    const rest = [
      start(),
      ...textBlock(0, 'Let me see what there is.', ' Kelp holds.'),
      end('end_turn'),
      stop,
    ];
    const { stream, client } = await ask([cut, rest]);
    expect(stream).toMatchObject({
      violations: [],
      text: 'Let me see what there is. Kelp holds.',
      done: true,
    });
    expect(client.body).not.toContain('server_tool_use');
  });

  test('a search without its result is not made again: what it did is not known', async () => {
    const cut = [
      start(),
      ...textBlock(0, 'Let me see what there is.'),
      SEARCH,
      input(1, '{}'),
      blockStop(1),
      CUT,
    ];
    const rest = [start(), ...textBlock(0, 'what there is.', ' Kelp holds.'), end('end_turn'), stop];
    const { client, requests, stream } = await ask([cut, rest]);
    expect(requests).toHaveLength(1);
    expect(said(client.body, 'content_block_start')).toMatchObject([
      { content_block: { type: 'text' } },
      { content_block: { type: 'server_tool_use', id: 'srvtoolu_1' } },
    ]);
    expect(stream.error).toMatchObject({
      code: 'tool_running',
      holdfast: {
        retryable: false,
        parts: [
          { type: 'text', text: 'Let me see what there is.' },
          { type: 'provider_tool', id: 'srvtoolu_1', name: 'web_search', result: 'unknown', items: [] },
        ],
      },
    });
  });

  test('thinking in the middle of the answer that was cut is not shown: nothing could sign it', async () => {
    const begun = [start(), ...textBlock(0, 'Let me see what there is.')];
    const cut = [...begun, thinkingStart(1), thinking(1, 'Hm'), thinking(1, ', kelp'), CUT];
    const rest = [
      start(),
      ...textBlock(0, 'Let me see what there is.', ' Kelp holds.'),
      end('end_turn'),
      stop,
    ];
    const { stream, client } = await ask([cut, rest]);
    expect(stream).toMatchObject({ violations: [], done: true });
    expect(client.body).not.toContain('thinking');
    const unthought = await ask([[...begun, CUT], rest]);
    expect(stream.usage).toEqual(unthought.stream.usage);
  });

  test('thinking in the middle of the answer that was cut is shown whole, with its signature, when the answer is made again', async () => {
    const cut = [
      start(),
      ...textBlock(0, 'Let me see.'),
      thinkingStart(1),
      thinking(1, 'Which'),
      thinking(1, ' port?'),
      CUT,
    ];
    const again = [
      start(),
      ...textBlock(0, 'Let me see.'),
      thinkingStart(1),
      thinking(1, 'Which'),
      thinking(1, ' port? Brest.'),
      signature(1, signatureOf('Which port? Brest.')),
      blockStop(1),
      ...toolBlock(2, 'toolu_1', '{"port": "Brest"}'),
      end('tool_use'),
      stop,
    ];
    const forced = { tools: [TIDES], tool_choice: { type: 'any' } };
    const { stream, requests, journal } = await ask([cut, again], forced);
    expect(requests[1]).toEqual(requests[0]);
    expect(stream).toMatchObject({
      violations: [],
      reasoning: 'Which port? Brest.',
      toolCalls: [{ id: 'toolu_1' }],
      done: true,
    });
    expect(journal.reasoning).toBe('Which port? Brest.');
  });
});

describe('an answer that was cut', () => {
  const CUT_IN_TEXT = [start(), textStart(0), text(0, 'Kelp holds fast to'), CUT];

  test('continues in the block in which it was cut', async () => {
    const rest = [
      start({ id: 'msg_2' }),
      ping,
      textStart(0),
      ping,
      text(0, 'Kelp holds fast to the rock'),
      text(0, ', whatever comes.'),
      blockStop(0),
      end('end_turn'),
      stop,
    ];
    const { client, requests } = await ask([CUT_IN_TEXT, rest]);
    expect(eventsOf(client.body).map(({ type, index }) => [type, index])).toEqual([
      ['message_start', undefined],
      ['content_block_start', 0],
      ['content_block_delta', 0],
      ['content_block_delta', 0],
      ['content_block_delta', 0],
      ['content_block_stop', 0],
      ['message_delta', undefined],
      ['message_stop', undefined],
    ]);
    expect(client.body).not.toContain('msg_2');
    expect(requests).toHaveLength(2);
  });

  test('blocks of the rest are numbered on, those that came whole as well', async () => {
    const thought = [
      thinkingStart(0),
      thinking(0, 'Where was I?'),
      signature(0, signatureOf('Where was I?')),
      blockStop(0),
    ];
    const rest = [
      start(),
      ...thought,
      ...textBlock(1, 'Kelp holds fast to the rock.'),
      ...toolBlock(2, 'toolu_2', '{"port": "Brest"}'),
      ...textBlock(3, 'So.'),
      end('tool_use'),
      stop,
    ];
    const { stream, client } = await ask([CUT_IN_TEXT, rest], { tools: [TIDES] });
    expect(stream).toMatchObject({ violations: [], text: 'Kelp holds fast to the rock.So.', reasoning: '' });
    expect(
      said(client.body, 'content_block_start').map(({ index, content_block }) => [
        index,
        (content_block as { type: string }).type,
      ]),
    ).toEqual([
      [0, 'text'],
      [1, 'tool_use'],
      [2, 'text'],
    ]);
  });

  test('text that is held back is shown before the call that follows it', async () => {
    const rest = [
      start(),
      ...textBlock(0, ' it'),
      ...toolBlock(1, 'toolu_2', '{"port": "Brest"}'),
      end('tool_use'),
      stop,
    ];
    const { client } = await ask([CUT_IN_TEXT, rest], { tools: [TIDES], model: 'claude-sonnet-4-5' });
    expect(
      eventsOf(client.body).map(({ type, index, delta }) => [
        type,
        index,
        (delta as { text?: string })?.text,
      ]),
    ).toEqual([
      ['message_start', undefined, undefined],
      ['content_block_start', 0, undefined],
      ['content_block_delta', 0, 'Kelp holds fast to'],
      ['content_block_delta', 0, ' it'],
      ['content_block_stop', 0, undefined],
      ['content_block_start', 1, undefined],
      ['content_block_delta', 1, undefined],
      ['content_block_stop', 1, undefined],
      ['message_delta', undefined, undefined],
      ['message_stop', undefined, undefined],
    ]);
  });

  test.each([
    ['the same again', 'Two tides a day.', 'Two tides a day.'],
    ['otherwise', 'There are two.', 'Two tides'],
  ])(
    'thinking that was cut and is thought %s has the signature of what was thought',
    async (_, again, shown) => {
      const cut = [start(), thinkingStart(0), thinking(0, 'Two'), thinking(0, ' tides'), CUT];
      const whole = [
        start(),
        thinkingStart(0),
        thinking(0, again),
        signature(0, 'c2ln'),
        blockStop(0),
        ...textBlock(1, 'Twice.'),
        end('end_turn'),
        stop,
      ];
      const { client, stream } = await ask([cut, whole]);
      expect(stream.reasoning).toBe(shown);
      expect(
        said(client.body, 'content_block_delta')
          .map(({ delta }) => (delta as { signature?: string }).signature)
          .filter(Boolean),
      ).toEqual(['c2ln']);
      expect(said(client.body, 'content_block_stop').map(({ index }) => index)).toEqual([0, 1]);
    },
  );

  test('settled calls are the answer when the next one is cut', async () => {
    const cut = [
      start(),
      ...toolBlock(0, 'toolu_1', '{"port": "Brest"}'),
      toolStart(1, 'toolu_2'),
      input(1, '{"po'),
      CUT,
    ];
    const { client, stream, outcome, requests } = await ask([cut], { tools: [TIDES] });
    expect(outcome).toBe('salvaged');
    expect(stream).toMatchObject({ violations: [], toolCalls: [{ id: 'toolu_1' }], done: true });
    expect(eventsOf(client.body).at(-2)).toMatchObject({
      delta: { stop_reason: 'tool_use', stop_sequence: null },
      usage: {
        input_tokens: 11,
        cache_creation_input_tokens: 3,
        cache_read_input_tokens: 5,
        output_tokens: expect.any(Number) as number,
      },
    });
    expect(requests).toHaveLength(1);
  });

  test('the end of its block settles a call, whatever its arguments prove', async () => {
    const cut = [start(), toolStart(0, 'toolu_1'), blockStop(0), CUT];
    const { outcome, stream } = await ask([cut], {}, { recovery: { tool_proof: 3 } });
    expect(outcome).toBe('salvaged');
    expect(stream.toolCalls).toEqual([{ id: 'toolu_1', name: 'tides', arguments: '{}' }]);
  });

  test('a forced tool is asked for again as it was, and what came again is left out', async () => {
    const tool_choice = { type: 'any' };
    const again = [
      start(),
      ...textBlock(0, 'Kelp holds fast to the rock.'),
      ...toolBlock(1, 'toolu_2', '{"port": "Brest"}'),
      end('tool_use'),
      stop,
    ];
    const request = { model: 'claude-sonnet-4-5', tools: [TIDES], tool_choice };
    const { requests, stream } = await ask([CUT_IN_TEXT, again], request);
    expect(requests[1]).toEqual(requests[0]);
    expect(stream).toMatchObject({
      violations: [],
      text: 'Kelp holds fast to the rock.',
      toolCalls: [{ id: 'toolu_2' }],
    });
  });

  test('a stop sequence across the seam ends it, and is reported', async () => {
    const cut = [start(), textStart(0), text(0, 'Kelp holds. EN'), CUT];
    const rest = [start(), ...textBlock(0, 'D of it, and more.'), end('end_turn'), stop];
    const { client, stream } = await ask([cut, rest], { stop: ['STOP', 'END'], model: 'claude-sonnet-4-5' });
    expect(stream).toMatchObject({ violations: [], text: 'Kelp holds. EN', done: true });
    expect(eventsOf(client.body).at(-2)).toMatchObject({
      delta: { stop_reason: 'stop_sequence', stop_sequence: 'END' },
    });
  });

  test('a stop sequence that the provider has found is reported as it was', async () => {
    const rest = [
      start(),
      ...textBlock(0, ' the rock. '),
      end('stop_sequence', { output_tokens: 4 }, { stop_sequence: 'END' }),
      stop,
    ];
    const { client } = await ask([CUT_IN_TEXT, rest], { stop: ['END'], model: 'claude-sonnet-4-5' });
    expect(eventsOf(client.body).at(-2)).toMatchObject({
      delta: { stop_reason: 'stop_sequence', stop_sequence: 'END' },
    });
  });

  test('what is left of the limit is asked for; when nothing is, the limit was reached', async () => {
    const words = Array.from({ length: 8 }, (_, index) => text(0, ` w${index}`));
    const cut = [start(), textStart(0), ...words, CUT];
    const rest = [start(), ...textBlock(0, ' w8 w9'), end('max_tokens', { output_tokens: 2 }), stop];
    const { requests } = await ask([cut, rest], { max_tokens: 10, model: 'claude-sonnet-4-5' });
    expect(requests[1]).toMatchObject({ max_tokens: 2 });
    const over = await ask([cut, rest], { max_tokens: 8 });
    expect(over.requests).toHaveLength(1);
    expect(eventsOf(over.client.body).at(-2)).toMatchObject({ delta: { stop_reason: 'max_tokens' } });
  });

  test('the report is that of one answer: its own prompt, and the tokens of all of it', async () => {
    const input_tokens = { input_tokens: 60, cache_creation_input_tokens: 0, cache_read_input_tokens: 19 };
    const rest = [
      start({ usage: { ...input_tokens, output_tokens: 1 } }),
      ...textBlock(0, ' the rock.'),
      end('end_turn', { ...input_tokens, output_tokens: 3 }),
      stop,
    ];
    const { client, journal } = await ask([CUT_IN_TEXT, rest], { model: 'claude-sonnet-4-5' });
    const usage = {
      input_tokens: 11,
      cache_creation_input_tokens: 3,
      cache_read_input_tokens: 5,
      output_tokens: 8,
    };
    expect(eventsOf(client.body).at(-2)).toMatchObject({ usage });
    expect(journal.usage).toMatchObject({
      ...usage,
      prompt_tokens: 19,
      completion_tokens: 8,
      total_tokens: 27,
    });
  });
});

describe('errors', () => {
  const OVERLOADED = event({
    type: 'error',
    error: { details: null, type: 'overloaded_error', message: 'Overloaded' },
    request_id: 'req_1',
  });
  const WHOLE = [start(), ...textBlock(0, 'Kelp holds.'), end('end_turn'), stop];

  test.each<[string, RawAnswer]>([
    ['as the first event', [OVERLOADED]],
    ['after the beginning of the message', [start(), ping, textStart(0), OVERLOADED]],
    ['after pings alone', [ping, ping, OVERLOADED]],
  ])('%s: the next attempt is the answer', async (_, failed) => {
    const { client, requests } = await ask([failed, WHOLE]);
    expect(client.body).toBe(WHOLE.join(''));
    expect(requests).toHaveLength(2);
  });

  test('in the middle: the answer continues', async () => {
    const cut = [start(), textStart(0), text(0, 'Kelp holds fast to'), OVERLOADED];
    const rest = [start(), ...textBlock(0, 'Kelp holds fast to the rock.'), end('end_turn'), stop];
    const { stream } = await ask([cut, rest]);
    expect(stream).toMatchObject({ violations: [], text: 'Kelp holds fast to the rock.', done: true });
  });

  test('for good: the client gets an error in the shape of the wire, with the outcome of the run', async () => {
    const cut = [start(), textStart(0), text(0, 'Kelp holds fast to'), OVERLOADED];
    const { client, stream, outcome } = await ask([
      cut,
      [OVERLOADED],
      [OVERLOADED],
      [OVERLOADED],
      [OVERLOADED],
    ]);
    expect(outcome).toBe('failed');
    expect(stream.violations).toEqual([]);
    expect(client.body).not.toContain('message_delta');
    const last = eventsOf(client.body).at(-1);
    expect(last).toEqual({
      type: 'error',
      error: {
        type: 'api_error',
        message: expect.stringContaining('provider_5xx, 529): Overloaded') as string,
        code: 'stream_interrupted',
        holdfast: expect.objectContaining({
          stream_id: 'msg_1',
          cause: 'provider_5xx',
          partial_text: 'Kelp holds fast to',
          retryable: true,
        }) as object,
      },
    });
  });

  test('permanent ones are not asked about again', async () => {
    const refused = event({ type: 'error', error: { type: 'invalid_request_error', message: 'No.' } });
    const { client, requests } = await ask([[refused], WHOLE]);
    expect(requests).toHaveLength(1);
    expect(client.rejection?.status).toBe(400);
    expect(JSON.parse(client.rejection?.body ?? '')).toEqual({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: 'No.',
        code: 'invalid_request',
        holdfast: { run_id: expect.stringMatching(/^run_/) },
      },
    });
  });

  test('ours before the stream have the shape of the wire, too', async () => {
    const { client } = await ask([[OVERLOADED], [OVERLOADED], [OVERLOADED], [OVERLOADED], [OVERLOADED]]);
    expect(client.rejection?.status).toBe(503);
    expect(JSON.parse(client.rejection?.body ?? '')).toMatchObject({
      type: 'error',
      error: { type: 'api_error', code: 'upstream_unavailable' },
    });
  });
});

describe('what is said besides', () => {
  const cut = [
    start(),
    textStart(0),
    text(0, 'Kelp holds fast to'),
    toolStart(1, 'toolu_1'),
    input(1, '{"po'),
    CUT,
  ];
  const rest = [start(), ...textBlock(0, 'Kelp holds fast to the rock.'), end('end_turn'), stop];

  test('chunks: in pings, which no SDK looks into', async () => {
    const { stream, client } = await ask([cut, rest], { tools: [TIDES] }, { events: 'chunks' });
    expect(stream.violations).toEqual([]);
    expect(stream.advisories).toMatchObject([
      { type: 'ToolCallCancel', id: 'toolu_1', name: 'tides' },
      { type: 'Recovered', plan: 'R3' },
    ]);
    expect(said(client.body, 'ping').every(({ holdfast }) => holdfast)).toBe(true);
    // The cancellation precedes the end, so a client that acts on the end knows already.
    expect(
      eventsOf(client.body)
        .map(({ type, index }) => [type, index])
        .slice(6, 8),
    ).toEqual([
      ['ping', undefined],
      ['content_block_stop', 1],
    ]);
  });

  test('comments: beside the events', async () => {
    const { stream, client } = await ask([cut, rest], { tools: [TIDES] }, { events: 'comments' });
    expect(stream.violations).toEqual([]);
    expect(stream.advisories).toMatchObject([{ type: 'ToolCallCancel' }, { type: 'Recovered' }]);
    expect(client.body).not.toContain('event: ping');
  });

  test('none: nothing', async () => {
    const { stream } = await ask([cut, rest], { tools: [TIDES] });
    expect(stream).toMatchObject({ violations: [], advisories: [], toolCalls: [] });
  });

  test('content that says nothing while a recovery takes long', async () => {
    const slow = [200_000, ...rest];
    const { client, stream } = await ask(
      [[start(), textStart(0), text(0, 'Kelp holds fast to'), CUT], slow],
      {},
      { configuration: { clocks: PATIENT_CLOCKS } },
    );
    const empty = { type: 'text_delta', text: '' };
    const deltas = said(client.body, 'content_block_delta').map(({ index, delta }) => ({ index, delta }));
    expect(deltas.filter(({ delta }) => JSON.stringify(delta) === JSON.stringify(empty))).toHaveLength(13);
    expect(stream.violations).toEqual([]);
  });
});
