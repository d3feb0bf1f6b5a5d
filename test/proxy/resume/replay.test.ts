import { describe, expect, test } from 'vitest';
import type { JournalEvent, JournalRecord, RunHeader } from '../../../src/checkpoint/journal.ts';
import type { Takeover } from '../../../src/checkpoint/store.ts';
import type { Delta, Segment } from '../../../src/plans/delta.ts';
import { Replay } from '../../../src/proxy/resume/replay.ts';
import { HEADER, HEADER_RECORD } from '../../checkpoint/fixtures.ts';
import { payloadsOf } from '../../simulation/fleet.ts';
import { RUN } from '../../simulation/simulate.ts';
import { outputGate } from '../run/output-gate-setting.ts';

const ENVELOPE = {
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  system_fingerprint: 'f',
};
const chunkOf = (delta: object, more: object = {}, choice: object = {}): string =>
  JSON.stringify({ ...ENVELOPE, ...more, choices: [{ index: 0, delta, ...choice, finish_reason: null }] });

/** What a client and a later reader get of these provider events. `segments`: the events that begin an attempt. */
function delivered(payloads: readonly string[], segments: Readonly<Record<number, Segment>> = {}) {
  const { client, events, output, show } = outputGate();
  for (const [index, data] of payloads.entries()) {
    const segment = segments[index];
    if (segment) output.begin(segment);
    show(data);
  }
  void output.end();
  const replay = new Replay({ run: RUN, resumable: false, cursor: 0 });
  const pieces = [...replay.pieces([HEADER_RECORD, { seq: events.length, events }], [])];
  return { sent: payloadsOf(client.body), replayed: payloadsOf(pieces.join('')), events };
}

const SHARED = { citations: ['https://kelp.test'], provider: { name: 'p' } };
const FIRST = chunkOf({ role: 'assistant', content: 'Kelp' }, SHARED);
const isKept = ({ payload }: JournalEvent) => payload !== undefined;

describe('a replay', () => {
  test.each([
    [
      'log probabilities',
      chunkOf({ content: ' grips' }, {}, { logprobs: { content: [{ token: ' grips' }] } }),
    ],
    ['annotations', chunkOf({ content: ' grips', annotations: [{ type: 'url_citation' }] })],
    ['verdicts of a filter', chunkOf({ content: ' grips' }, {}, { content_filter_results: { hate: {} } })],
    ['parts of content', chunkOf({ content: [{ type: 'text', text: ' grips' }] })],
    ['fields of the provider', chunkOf({ content: ' grips' }, { citations: ['https://surge.test'] })],
  ])('has all that a chunk said besides its text: %s', (_, payload) => {
    const { sent, replayed } = delivered([FIRST, payload, payload]);
    expect(replayed).toEqual(sent);
    expect(replayed).toEqual([FIRST, payload, payload]);
  });

  test.each([
    ['nothing else', {}, {}],
    ['padding', { obfuscation: 'ab1c' }, {}],
    ['fields without a value', { usage: null }, { logprobs: null, content_filter_results: {} }],
    ['fields that all chunks share', SHARED, {}],
  ])('of chunks with text and %s needs no more than the text', (_, more, choice) => {
    const payload = chunkOf({ content: ' grips', refusal: null }, more, choice);
    const { replayed, events } = delivered([FIRST, payload, payload]);
    expect(events.map(isKept)).toEqual([true, false, false]);
    expect(JSON.parse(replayed[2] ?? '')).toEqual(JSON.parse(chunkOf({ content: ' grips' }, SHARED)));
  });

  test('does not show segments, which come with the first content of an attempt', () => {
    const role = chunkOf({ role: 'assistant', content: '' });
    const payload = chunkOf({ content: ' grips' });
    const first: Segment = { attempt: 1, upstream: 'a', mode: 'first' };
    const next: Segment = { attempt: 2, upstream: 'b', mode: 'prefill', plan: 'R1', cause: 'goaway' };
    const { sent, replayed, events } = delivered([role, payload, payload, payload], { 0: first, 3: next });
    expect(replayed).toEqual(sent);
    expect(events.map(isKept)).toEqual([true, true, false, false]);
    const said = { kind: 'text', text: ' grips' };
    expect(events.map(({ deltas }) => deltas)).toEqual([
      [],
      [{ kind: 'segment', ...first }, said],
      [said],
      [{ kind: 'segment', ...next }, said],
    ]);
  });

  test('that is given the run from its beginning again continues behind what it has seen of it', () => {
    const payload = chunkOf({ content: ' grips' });
    const { replayed, events } = delivered([FIRST, payload, payload, payload]);
    expect(events.map(isKept)).toEqual([true, false, false, false]);
    const records = events.map((event, index) => ({ seq: index + 1, events: [event] }));
    const replay = new Replay({ run: RUN, resumable: false, cursor: 0 });
    const before = [...replay.pieces([HEADER_RECORD, ...records.slice(0, 2)], [])];
    // As read by a replica that takes over the run after its holder has added to it.
    const after = [...replay.pieces([HEADER_RECORD, ...records], [])];
    expect(payloadsOf([...before, ...after].join(''))).toEqual(replayed);
  });

  describe('of an answer in which a call was cancelled, to a client that has comments', () => {
    const start: Delta = { kind: 'tool_start', index: 0, id: 'call_a', name: 'now' };
    const said: Delta = { kind: 'text', text: ' grips' };
    const payload = chunkOf({ content: ' grips' });
    const startChunk = chunkOf({
      tool_calls: [{ index: 1, id: 'call_a', type: 'function', function: { name: 'now', arguments: '' } }],
    });
    const events: JournalEvent[] = [
      { payload: FIRST, deltas: [start] },
      { payload, deltas: [{ kind: 'tool_cancel', index: 0 }, said] },
      { payload, deltas: [said] },
    ];
    const header: RunHeader = { ...HEADER, events: 'comments' };
    const framesBehind = (cursor: number, takeovers: readonly Takeover[], epoch?: string, log = events) => {
      const replay = new Replay({ run: RUN, resumable: false, cursor, ...(epoch && { epoch }) });
      const first: JournalRecord = { ...HEADER_RECORD, header };
      return [...replay.pieces([first, { seq: log.length, events: log }], takeovers)].join('');
    };
    const cancellations = (frames: string): number => frames.match(/ToolCallCancel/g)?.length ?? 0;

    test('has the comment in front of the event that came with it', () => {
      const frames = framesBehind(1, []);
      expect(cancellations(frames)).toBe(1);
      expect(payloadsOf(frames)).toEqual([payload, payload]);
    });

    test('has no comment that the client was sent', () => {
      expect(cancellations(framesBehind(2, []))).toBe(0);
      expect(cancellations(framesBehind(2, [{ seq: 1 }], '2'))).toBe(0);
    });

    test('has the comment where the client has its event from a replica that was lost', () => {
      const frames = framesBehind(2, [{ seq: 1 }]);
      expect(cancellations(frames)).toBe(1);
      expect(payloadsOf(frames)).toEqual([payload]);
    });

    test.each([
      ['has the comment for whatever comes next where the log ends before what the client has', payload, 1],
      ['has no comment that would cancel a call which only the client has', startChunk, 0],
    ])('%s', (_, brought, count) => {
      const replay = new Replay({ run: RUN, resumable: false, cursor: 3 });
      const records: JournalRecord[] = [
        { ...HEADER_RECORD, header },
        { seq: 2, events: events.slice(0, 2) },
      ];
      expect([...replay.pieces(records, [{ seq: 1 }])]).toEqual([]);
      expect(cancellations(replay.commentsBehind([brought]))).toBe(count);
      expect(replay.commentsBehind([])).toBe('');
    });

    test('has no comment that would cancel a later call of the same id', () => {
      const again: JournalEvent = { payload, deltas: [{ ...start, index: 1 }] };
      const log = [...events.slice(0, 2), again, ...events.slice(2)];
      expect(cancellations(framesBehind(2, [{ seq: 1 }], '1', log))).toBe(1);
      expect(cancellations(framesBehind(3, [{ seq: 1 }], '1', log))).toBe(0);
    });
  });

  test('knows nothing of an attempt that added nothing', () => {
    const role = chunkOf({ role: 'assistant', content: '' });
    const first: Segment = { attempt: 1, upstream: 'a', mode: 'first' };
    const { events } = delivered([role, role, FIRST], { 0: first, 1: { ...first, attempt: 2 } });
    expect(events.flatMap(({ deltas }) => deltas)).toMatchObject([
      { kind: 'segment', attempt: 2 },
      { kind: 'text' },
    ]);
  });
});
