import { describe, expect, test } from 'vitest';
import type { JournalEvent } from '../../../src/checkpoint/journal.ts';
import type { StoredRun } from '../../../src/checkpoint/store.ts';
import type { Delta } from '../../../src/plans/delta.ts';
import { RestoredRun } from '../../../src/proxy/run/restored-run.ts';
import { factsOf } from '../../../src/proxy/wires/chunks/chat-request.ts';
import { chatWire } from '../../../src/proxy/wires/chunks/chat-wire.ts';
import type { AnswerWriter } from '../../../src/proxy/wires/common/wire.ts';

const chunkOf = (delta: object, finish_reason: string | null = null, more: object = {}): string =>
  JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    ...more,
    choices: [{ index: 0, delta, finish_reason }],
  });
const ROLE = chunkOf({ role: 'assistant', content: '' });
const started = (index: number, text = '') =>
  chunkOf({
    tool_calls: [
      { index, id: `call_${index}`, type: 'function', function: { name: 'forecast', arguments: text } },
    ],
  });
const fragment = (index: number, text: string) =>
  chunkOf({ tool_calls: [{ index, function: { arguments: text } }] });

interface Made {
  readonly events?: readonly JournalEvent[];
  readonly tail?: readonly string[];
  readonly live?: boolean;
  readonly forwarded?: boolean;
}

function restored({ events = [], tail = [], live = false, forwarded = false }: Made): RestoredRun {
  const stored: StoredRun = {
    status: 'running',
    epoch: 1,
    holder: { state: 'lost' },
    takeovers: [],
    seq: events.length,
    records: [{ seq: events.length, events }],
  };
  const rules = { wire: chatWire, schemas: new Map(), tool_proof: 1, live, forwarded } as const;
  return new RestoredRun({ stored, tail }, rules);
}

/** The answer as this replica continues it. */
function answerOf(run: RestoredRun) {
  const sent: string[] = [];
  const writer: AnswerWriter = chatWire.writer({
    events: 'none',
    facts: factsOf({ model: 'm', messages: [], stream: true }),
    sink: { send: (payload) => sent.push(payload), comment: () => {}, keep: () => {}, storeFirst: () => {} },
  });
  run.restore(writer);
  return { writer, sent };
}

/** What is recorded of the tail, without its origin. */
const healed = (made: Made): readonly Delta[] =>
  restored(made)
    .healed.flatMap(({ deltas }) => deltas)
    .filter(({ kind }) => kind !== 'segment');
const START: Delta = { kind: 'tool_start', index: 0, id: 'call_0', name: 'forecast' };

describe('what the journal has', () => {
  test('shows what server the answer came from, where any of it was sent', () => {
    const first = chunkOf({ role: 'assistant', content: '' }, null, { system_fingerprint: 'fp_ollama' });
    const { samples: traces } = restored({ events: [{ deltas: [], payload: first }] }).report;
    expect(traces).toEqual({ events: [JSON.parse(first)], headers: {} });
    expect(restored({}).report.samples).toEqual({ events: [], headers: {} });
  });

  test('is the transcript, an attempt that was lost, and how many events there are', () => {
    const run = restored({
      events: [
        { deltas: [], payload: ROLE },
        { deltas: [{ kind: 'text', text: 'Kelp' }], payload: chunkOf({ content: 'Kelp' }) },
        { deltas: [{ kind: 'text', text: ' holds' }] },
      ],
    });

    expect(run.transcript.text).toBe('Kelp holds');
    expect(run.seq).toBe(3);
    expect(run.report).toMatchObject({ phase: 'text', added: 10, end: { kind: 'replica_lost' } });
    expect(run.report.ending).toBeUndefined();
    expect(run.tally.text).toEqual({ deltas: 2, came: 10, kept: 10 });
    expect(run.ended).toBeUndefined();
  });

  test.each<[string, Delta[], string]>([
    ['nothing', [], 'connect'],
    ['reasoning', [{ kind: 'reasoning', text: 'x' }], 'reasoning'],
    ['a refusal', [{ kind: 'refusal', text: 'x' }], 'text'],
    ['a call', [START], 'tool_call'],
  ])('tells the phase: %s', (_, deltas, phase) => {
    expect(restored({ events: [{ deltas, payload: ROLE }] }).report.phase).toBe(phase);
  });

  test('gives the answer its identity, and says where the provider puts its thinking', () => {
    const thought = chunkOf({ reasoning: 'Hm.' });
    const run = restored({
      events: [
        { deltas: [], payload: ROLE },
        { deltas: [{ kind: 'reasoning', text: 'Hm.' }], payload: thought },
      ],
    });

    const { writer, sent } = answerOf(run);
    if (run.event) writer.show([{ kind: 'reasoning', text: 'So.' }], run.event, false);
    expect(sent.map((payload) => JSON.parse(payload))).toEqual([JSON.parse(chunkOf({ reasoning: 'So.' }))]);
  });

  test('has no identity while nothing was sent', () => {
    expect(answerOf(restored({})).writer.begun).toBe(false);
    expect(restored({}).event).toBeUndefined();
  });

  test('may hold the finish, but not the end', () => {
    const finish: JournalEvent = {
      deltas: [{ kind: 'finish', reason: 'stop' }],
      payload: chunkOf({}, 'stop'),
    };
    const run = restored({ events: [{ deltas: [], payload: ROLE }, finish] });

    expect(run.report.ending).toEqual({ reason: 'stop', after: [], begun: true });
    expect(run.ended).toBeUndefined();
  });

  test.each([
    ['[DONE]', 'done'],
    [JSON.stringify({ error: { message: 'x' } }), 'error'],
    [JSON.stringify({ error: null, choices: [] }), undefined],
    [ROLE, undefined],
  ] as const)('ends with %s: %s', (payload, end) => {
    expect(chatWire.delivered.endOf(payload)).toBe(end);
  });
});

describe('what the client brings', () => {
  test('is what its events said, kept as they are', () => {
    const tail = [ROLE, chunkOf({ content: 'Kelp' })];
    const run = restored({ tail });

    expect(run.healed).toEqual([
      { deltas: [], payload: tail[0] },
      {
        deltas: [
          { kind: 'segment', mode: 'brought' },
          { kind: 'text', text: 'Kelp' },
        ],
        payload: tail[1],
      },
    ]);
    expect([run.seq, run.transcript.text, answerOf(run).writer.begun]).toEqual([2, 'Kelp', true]);
  });

  test('is a closed call where calls are held until then', () => {
    expect(healed({ tail: [ROLE, started(0, '{"city":"Paris"}')] })).toEqual([
      START,
      { kind: 'tool_arguments', index: 0, text: '{"city":"Paris"}' },
      { kind: 'tool_close', index: 0, proof: 1 },
    ]);
  });

  test('is an open call where its fragments were sent as they came, begun in the journal or not', () => {
    const begun = { deltas: [START], payload: started(0) };
    const deltas = healed({ events: [begun], tail: [fragment(0, '{"ci'), fragment(0, 'ty"')], live: true });

    expect(deltas).toEqual([
      { kind: 'tool_arguments', index: 0, text: '{"ci' },
      { kind: 'tool_arguments', index: 0, text: 'ty"' },
    ]);
  });

  test('closes an open call when text follows', () => {
    const tail = [started(0), fragment(0, '{"city":"Paris"}'), chunkOf({ content: 'So' })];

    expect(healed({ tail, live: true }).slice(-2)).toEqual([
      { kind: 'tool_close', index: 0, proof: 2 },
      { kind: 'text', text: 'So' },
    ]);
  });

  test('tells by the finish which calls were whole, and which were cut before', () => {
    const tail = [started(0), started(1), fragment(1, '{}'), chunkOf({}, 'tool_calls')];

    expect(healed({ tail, live: true }).slice(-3)).toEqual([
      { kind: 'tool_close', index: 1, proof: 3 },
      { kind: 'tool_cancel', index: 0 },
      { kind: 'finish', reason: 'tool_calls' },
    ]);
  });

  test('has the calls that were cancelled', () => {
    const advisory = { holdfast: { type: 'ToolCallCancel', id: 'call_0', name: 'forecast' } };
    const tail = [started(0), fragment(0, '{"ci'), chunkOf({}, null, advisory)];

    expect(healed({ tail, live: true }).at(-1)).toEqual({ kind: 'tool_cancel', index: 0 });
  });

  test('is the one call of the legacy interface', () => {
    const tail = [
      chunkOf({ function_call: { name: 'forecast', arguments: '' } }),
      chunkOf({ function_call: { arguments: '{"city":"Paris"}' } }),
    ];

    expect(healed({ tail, live: true })).toEqual([
      { kind: 'tool_start', index: 0, id: '', name: 'forecast' },
      { kind: 'tool_arguments', index: 0, text: '{"city":"Paris"}' },
    ]);
  });

  test.each([
    ['of a call that never began', fragment(3, '{}')],
    ['without an index', chunkOf({ tool_calls: [{ function: { arguments: '{}' } }] })],
    ['without a function', chunkOf({ tool_calls: [{ index: 0 }] })],
  ])('is nothing if it is a fragment %s', (_, payload) => {
    expect(healed({ tail: [payload], live: true })).toEqual([]);
  });

  test('is only text where several answers were sent as they came', () => {
    const tail = [chunkOf({ content: 'Kelp' }), chunkOf({ content: '' }, 'stop')];

    expect(healed({ tail, forwarded: true })).toEqual([{ kind: 'text', text: 'Kelp' }]);
  });

  test('has no known origin, from its first content on, whatever came before', () => {
    const first: Delta = { kind: 'segment', attempt: 3, upstream: 'a', mode: 'first' };
    const text: Delta = { kind: 'text', text: 'Kelp' };
    const run = restored({
      events: [{ deltas: [first, text], payload: chunkOf({ role: 'assistant', content: 'Kelp' }) }],
      tail: [chunkOf({}), chunkOf({ content: ' holds' }), chunkOf({ content: ' fast' })],
    });
    expect(run.attempts).toBe(3);
    expect(run.healed.map(({ deltas }) => deltas)).toEqual([
      [],
      [
        { kind: 'segment', mode: 'brought' },
        { kind: 'text', text: ' holds' },
      ],
      [{ kind: 'text', text: ' fast' }],
    ]);
  });

  test('may be the end itself', () => {
    expect(restored({ tail: [ROLE, '[DONE]'] }).ended).toBe('done');
    expect(restored({ tail: [ROLE, '{"error":{"message":"x"}}'] }).ended).toBe('error');
  });
});
