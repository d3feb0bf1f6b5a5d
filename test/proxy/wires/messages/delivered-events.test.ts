import { describe, expect, test } from 'vitest';
import type { JournalEvent } from '../../../../src/checkpoint/journal.ts';
import type { StoredRun } from '../../../../src/checkpoint/store.ts';
import type { Delta } from '../../../../src/plans/delta.ts';
import { RestoredRun } from '../../../../src/proxy/run/restored-run.ts';
import { messagesWire } from '../../../../src/proxy/wires/messages/wire.ts';
import type { Plan } from '../../../provider/script.ts';
import { Fleet, payloadsOf } from '../../../simulation/fleet.ts';
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
import { salvagedEnding } from '../salvaged-ending.ts';

const { delivered } = messagesWire;
const payloadOf = (frame: string): string => /^data: (.*)$/m.exec(frame)?.[1] ?? '';
const stored = (frame: string, ...deltas: Delta[]): JournalEvent => ({ deltas, payload: payloadOf(frame) });
const CALL: readonly Delta[] = [
  { kind: 'tool_start', index: 0, id: 'toolu_1', name: 'tides' },
  { kind: 'tool_arguments', index: 0, text: '{"port":"Brest"}' },
  { kind: 'tool_close', index: 0, proof: 3 },
];

/** The answer as another replica continues it, and the events that this replica sends. */
function restored(events: readonly JournalEvent[], tail: readonly string[] = [], live = false) {
  const run: StoredRun = {
    status: 'running',
    epoch: 1,
    holder: { state: 'lost' },
    takeovers: [],
    seq: events.length,
    records: [{ seq: events.length, events }],
  };
  const rules = { wire: messagesWire, schemas: new Map(), tool_proof: 1, live, forwarded: false } as const;
  const sent: string[] = [];
  const writer = messagesWire.writer({
    events: live ? 'chunks' : 'none',
    facts: messagesWire.facts({ model: 'm', stream: true, messages: [] }),
    sink: {
      send: (payload) => void sent.push(payload),
      comment: () => {},
      keep: () => {},
      storeFirst: () => {},
    },
  });
  const shown = new RestoredRun({ stored: run, tail: tail.map(payloadOf) }, rules);
  shown.restore(writer);
  const parsed = () => sent.map((payload) => JSON.parse(payload) as Record<string, unknown>);
  return { shown, writer, sent: parsed };
}

const finish = { reason: 'tool_calls', after: [], usageAsked: true } as const;

describe('payloads', () => {
  test.each<[string, string, 'done' | 'error' | undefined]>([
    ['the last event', stop, 'done'],
    ['an error', event({ type: 'error', error: {} }), 'error'],
    ['a text that speaks of one', text(0, '"type":"error"'), undefined],
    ['a ping', ping, undefined],
  ])('%s ends a stream: %s', (_, frame, ends) => {
    expect(delivered.endOf(payloadOf(frame))).toBe(ends);
  });

  test('the name of an event is its type, wherever that is said', () => {
    expect(messagesWire.eventOf?.('{ "type" : "ping" }')).toBe('ping');
    expect(
      messagesWire.eventOf?.('{"index":0,"delta":{"type":"text_delta"},"type":"content_block_delta"}'),
    ).toBe('content_block_delta');
    expect(messagesWire.eventOf?.('{"index":0}')).toBe('');
  });

  test('the identity is that of the message', () => {
    expect(delivered.hasIdentity(payloadOf(start()))).toBe(true);
    expect(delivered.hasIdentity(payloadOf(ping))).toBe(false);
    expect(delivered.idOf(payloadOf(start()))).toBe('msg_1');
    expect(delivered.idOf(payloadOf(ping))).toBeUndefined();
  });

  test('text that was stored without comes in the block that was open', () => {
    const rebuilder = delivered.rebuilder();
    for (const frame of [start(), thinkingStart(0), blockStop(0), textStart(1)])
      rebuilder.add(payloadOf(frame));
    expect(JSON.parse(rebuilder.payloadOf([{ kind: 'text', text: 'Kelp' }]))).toEqual(
      JSON.parse(payloadOf(text(1, 'Kelp'))),
    );
  });
});

describe('an answer that another replica continues', () => {
  test('continues in the block that is open', () => {
    const { writer, sent } = restored([
      stored(start()),
      stored(textStart(0)),
      { deltas: [{ kind: 'text', text: 'Kelp' }] },
    ]);
    expect(writer).toMatchObject({ begun: true, id: 'msg_1' });
    writer.show([{ kind: 'text', text: ' holds' }], delivered.standIn(''), false);
    writer.finish({ ...finish, reason: 'stop' });
    expect(sent()).toMatchObject([
      { type: 'content_block_delta', index: 0, delta: { text: ' holds' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { input_tokens: 11 } },
      { type: 'message_stop' },
    ]);
  });

  test.each<[string, JournalEvent[], string[]]>([
    ['of which the beginning was sent', [stored(toolStart(0, 'toolu_1'), ...CALL)], ['{"port":"Brest"}']],
    [
      'of which some was sent',
      [stored(toolStart(0, 'toolu_1'), ...CALL), stored(input(0, '{"port'))],
      ['":"Brest"}'],
    ],
    [
      'of which the end is missing',
      [stored(toolStart(0, 'toolu_1'), ...CALL), stored(input(0, '{"port":"Brest"}'))],
      [],
    ],
  ])('a call %s is completed', (_, events, missing) => {
    const { writer, sent } = restored([stored(start()), ...events]);
    writer.finish(finish);
    expect(sent()).toMatchObject([
      ...missing.map((partial_json) => ({ type: 'content_block_delta', index: 0, delta: { partial_json } })),
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'tool_use' } },
      { type: 'message_stop' },
    ]);
  });

  test('a call that was cancelled while it was shown has its block ended', () => {
    const begun = stored(toolStart(0, 'toolu_1'), {
      kind: 'tool_start',
      index: 0,
      id: 'toolu_1',
      name: 'tides',
    });
    const cancel = event({ type: 'ping', holdfast: { type: 'ToolCallCancel', id: 'toolu_1' } });
    const { shown, writer, sent } = restored([stored(start()), begun], [cancel], true);
    expect(shown.transcript.openCalls).toEqual([]);
    writer.show([{ kind: 'text', text: 'So.' }], delivered.standIn(''), false);
    expect(sent().map(({ type, index }) => [type, index])).toEqual([
      ['content_block_stop', 0],
      ['content_block_start', 1],
      ['content_block_delta', 1],
    ]);
  });

  test('a call that is shown while it comes continues in its block', () => {
    const begun = stored(toolStart(0, 'toolu_1'), {
      kind: 'tool_start',
      index: 0,
      id: 'toolu_1',
      name: 'tides',
    });
    const { shown, writer, sent } = restored([stored(start()), begun], [input(0, '{"po')], true);
    expect(shown.transcript.openCalls).toMatchObject([{ arguments: '{"po' }]);
    writer.cancelCalls([0], 'connection_reset', 1);
    expect(sent()).toMatchObject([
      { type: 'ping', holdfast: { type: 'ToolCallCancel', id: 'toolu_1' } },
      { type: 'content_block_stop', index: 0 },
    ]);
  });

  test('has the thoughts that its provider will have back', () => {
    const events = [
      start(),
      thinkingStart(0),
      thinking(0, 'Two '),
      thinking(0, 'tides.'),
      signature(0, 'c2ln'),
      blockStop(0),
    ].map((frame) => stored(frame));
    expect(restored(events).shown.report.sealed).toEqual([
      { type: 'thinking', thinking: 'Two tides.', signature: 'c2ln' },
    ]);
  });
});

describe('what a client brings', () => {
  const brought = (...frames: readonly string[]) =>
    restored([], frames, true)
      .shown.healed.flatMap(({ deltas }) => deltas)
      .filter(({ kind }) => kind !== 'segment');

  test('says what it said', () => {
    const whole = [
      start(),
      thinkingStart(0),
      thinking(0, 'Hm'),
      blockStop(0),
      textStart(1),
      text(1, 'Kelp'),
      blockStop(1),
    ];
    const call = [toolStart(2, 'toolu_1'), input(2, '{}'), blockStop(2)];
    expect(brought(...whole, ping, ...call, end('tool_use'), stop)).toEqual([
      { kind: 'reasoning', text: 'Hm' },
      { kind: 'text', text: 'Kelp' },
      { kind: 'tool_start', index: 0, id: 'toolu_1', name: 'tides' },
      { kind: 'tool_arguments', index: 0, text: '{}' },
      { kind: 'tool_close', index: 0, proof: 3 },
      { kind: 'finish', reason: 'tool_calls' },
      {
        kind: 'usage',
        usage: { output_tokens: 40, prompt_tokens: 0, completion_tokens: 40, total_tokens: 40 },
      },
    ]);
  });

  test('tools that the provider ran, with their results', () => {
    const use = { type: 'server_tool_use', id: 's', name: 'web_search' };
    const result = { type: 'web_search_tool_result', tool_use_id: 's', content: [] };
    const search = [blockStart(0, use), input(0, '{"q":1}'), blockStop(0)];
    expect(brought(start(), ...search, blockStart(1, result), blockStop(1))).toEqual([
      { kind: 'provider_tool_start', id: 's', name: 'web_search' },
      {
        kind: 'provider_tool_end',
        id: 's',
        name: 'web_search',
        items: [{ ...use, input: { q: 1 } }, result],
      },
    ]);
  });

  test('of what is unknown, nothing is said', () => {
    const unknown = [
      event({ type: 'tomorrow' }),
      blockDelta(0, { type: 'citations_delta', citation: {} }),
      event({ type: 'error', error: {} }),
    ];
    expect(brought(start(), ...unknown)).toEqual([]);
  });

  test.each(['nonsense', '[1]', '{"index":0}'])('is no event of ours: %s', (payload) => {
    expect(delivered.reader().read(payload, 0)).toBeUndefined();
  });
});

describe('the end of an answer that was finalised', () => {
  test('closes what is open, and has the calls answered', () => {
    const sent = [
      stored(start()),
      stored(toolStart(0, 'toolu_1'), ...CALL),
      stored(input(0, '{"port":"Brest"}')),
      stored(blockStop(0)),
      stored(textStart(1)),
    ];
    const events = salvagedEnding('messages', sent);
    expect(events.map(({ payload = '' }) => JSON.parse(payload) as unknown)).toMatchObject([
      { type: 'content_block_stop', index: 1 },
      {
        type: 'message_delta',
        delta: { stop_reason: 'tool_use', stop_sequence: null },
        usage: { input_tokens: 11, output_tokens: 0 },
      },
      { type: 'message_stop' },
    ]);
    expect(events.flatMap(({ deltas }) => deltas)).toContainEqual({ kind: 'finish', reason: 'tool_calls' });
  });

  test('an error has the shape of the wire', () => {
    const [payload = ''] = delivered.failure(
      { message: 'No.', type: 'stream_interrupted', param: null, code: 'run_salvaged' },
      [],
    );
    expect(JSON.parse(payload)).toEqual({
      type: 'error',
      error: { type: 'api_error', message: 'No.', code: 'run_salvaged' },
    });
  });
});

test('a client with the beginning of a call that its store has lost gets no end of it', async () => {
  const plan: Plan = {
    parts: [
      { text: 'Kelp holds fast to the rock.' },
      { tool: { id: 'toolu_1', name: 'tides', arguments: '{}' } },
    ],
  };
  const fleet = new Fleet(plan, {
    wire: 'messages',
    request: { model: 'claude-opus-4-6' },
    pace_ms: 5,
    piece_bytes: 64,
  });
  const first = fleet.replica();
  const session = fleet.begin(first);
  session.outcome.catch(() => {});
  await fleet.pass(100);
  first.life.kill();
  const { seq } = await fleet.stored();
  const had = payloadsOf(session.client.body).slice(0, seq);
  const lost = [blockStop(0), toolStart(1, 'toolu_1')].map(payloadOf);
  await fleet.pass(10_000);
  const back = await fleet.follow(fleet.replica(), {
    cursor: seq + lost.length,
    tail: [...had, ...lost],
    resumable: true,
  });
  expect(await fleet.time.drive(back.outcome)).toBe('failed');
  expect(back.client).toMatchObject({ body: '', destroyed: true });
});
