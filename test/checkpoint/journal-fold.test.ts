import { describe, expect, test } from 'vitest';
import type { JournalEvent, JournalRecord } from '../../src/checkpoint/journal.ts';
import { foldJournal } from '../../src/checkpoint/journal-fold.ts';
import type { Delta } from '../../src/plans/delta.ts';
import { HEADER, HEADER_RECORD } from './fixtures.ts';

const eventsOf = (...deltas: Delta[]): JournalEvent[] => deltas.map((delta) => ({ deltas: [delta] }));
const recordOf = (...deltas: Delta[]): JournalRecord => ({ seq: deltas.length, events: eventsOf(...deltas) });

describe('a folded journal', () => {
  test('joins text, refusal and reasoning and keeps every event at its ordinal', () => {
    const record = recordOf(
      { kind: 'reasoning', text: 'hm' },
      { kind: 'text', text: 'a' },
      { kind: 'reasoning', text: 'm' },
      { kind: 'refusal', text: 'no' },
      { kind: 'text', text: 'b' },
    );
    const fold = foldJournal([HEADER_RECORD, record]);
    expect(fold).toEqual({
      seq: 5,
      header: HEADER,
      text: 'ab',
      refusal: 'no',
      reasoning: 'hmm',
      tool_calls: [],
      cancelled_calls: [],
      providerTools: [],
      choiceCalls: [],
      segments: [],
      events: record.events,
    });
  });

  test('puts tool calls together and distinguishes closed from open', () => {
    const fold = foldJournal([
      recordOf(
        { kind: 'tool_start', index: 0, id: 'call_a', name: 'f', extra: { signature: 's' } },
        { kind: 'tool_start', index: 1, id: 'call_b', name: 'g' },
        { kind: 'tool_arguments', index: 1, text: '{"y"' },
        { kind: 'tool_arguments', index: 0, text: '{}' },
        { kind: 'tool_close', index: 0, proof: 2 },
      ),
    ]);
    expect(fold.tool_calls).toEqual([
      { index: 0, id: 'call_a', name: 'f', extra: { signature: 's' }, arguments: '{}', closed: 2 },
      { index: 1, id: 'call_b', name: 'g', arguments: '{"y"' },
    ]);
  });

  test('takes a cancelled call out, but remembers its index', () => {
    const fold = foldJournal([
      recordOf(
        { kind: 'tool_start', index: 0, id: 'call_a', name: 'f' },
        { kind: 'tool_arguments', index: 0, text: '{"x' },
        { kind: 'tool_cancel', index: 0 },
        { kind: 'tool_start', index: 1, id: 'call_b', name: 'f' },
      ),
    ]);
    expect(fold.tool_calls.map(({ id }) => id)).toEqual(['call_b']);
    expect(fold.cancelled_calls).toEqual([{ index: 0, id: 'call_a', name: 'f', arguments: '{"x' }]);
  });

  test('keeps finish and usage', () => {
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3, cached: 1 };
    const fold = foldJournal([recordOf({ kind: 'finish', reason: 'stop' }, { kind: 'usage', usage })]);
    expect(fold).toMatchObject({ finish: 'stop', usage });
  });
});
