import { describe, expect, test } from 'vitest';
import type { WireName } from '../../../src/checkpoint/journal.ts';
import { foldJournal } from '../../../src/checkpoint/journal-fold.ts';
import type { StoredRun } from '../../../src/checkpoint/store.ts';
import { Replay } from '../../../src/proxy/resume/replay.ts';
import { isLeftOver, withEnding } from '../../../src/proxy/resume/stored-ending.ts';
import type { EventsMode } from '../../../src/proxy/wires/common/wire.ts';
import { HEADER, HEADER_RECORD } from '../../checkpoint/fixtures.ts';
import type { Plan } from '../../provider/script.ts';
import { RUN, readingOf, simulate } from '../../simulation/simulate.ts';

/** A salvaged run with one settled call. `id`: the id of the call, which the legacy interface lacks. */
function salvaged(id: string): StoredRun {
  const payload = JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ delta: {} }] });
  const deltas = [
    { kind: 'tool_start', index: 0, id, name: 'f' },
    { kind: 'tool_arguments', index: 0, text: '{}' },
    { kind: 'tool_close', index: 0, proof: 1 },
  ] as const;
  return {
    status: 'recovered_from_partial',
    end: { status: 'recovered_from_partial', at_ms: 1 },
    epoch: 2,
    holder: { state: 'released' },
    takeovers: [{ seq: 1 }],
    seq: 1,
    records: [HEADER_RECORD, { seq: 1, events: [{ deltas, payload }] }],
  };
}

describe('settled calls are the answer of a run that was salvaged', () => {
  test.each([
    ['call_a', 'tool_calls'],
    ['', 'function_call'],
  ])('and a call with the id %j finishes it as %s', (id, reason) => {
    const { seq, records } = withEnding(RUN, salvaged(id));
    const [finish, done] = records.at(-1)?.events ?? [];

    expect(seq).toBe(3);
    expect(JSON.parse(finish?.payload ?? '').choices[0].finish_reason).toBe(reason);
    expect(done?.payload).toBe('[DONE]');
  });
});

const CALLS = ['a', 'b', 'c'].map((name) => ({
  id: `call_${name}`,
  name: 'forecast',
  arguments: JSON.stringify({ city: name, days: 3 }),
}));
const PLAN: Plan = {
  parts: [
    { text: 'I look it up.' },
    ...CALLS.slice(0, 1).map((tool) => ({ tool })),
    { tools: CALLS.slice(1) },
  ],
  chunk: 4,
};

describe('a client that was shown calls as they came', () => {
  const wires: readonly WireName[] = ['chat_completions', 'messages', 'responses'];
  const modes: readonly EventsMode[] = ['none', 'chunks', 'comments'];
  test.each(wires.flatMap((wire) => modes.map((events) => [wire, events] as const)))(
    'does not take one for whole that was open when its run was salvaged (%s, %s)',
    async (wire, events) => {
      const { journal } = await simulate(PLAN, { wire, events });
      const header = { ...HEADER, wire, events };
      let open = 0;
      for (let seq = 1; seq < journal.seq; seq++) {
        const records = [
          { ...HEADER_RECORD, header },
          { seq, events: journal.events.slice(0, seq) },
        ];
        const before = foldJournal(records);
        if (before.finish !== undefined) break;
        const ended = withEnding(RUN, { ...salvaged('call_a'), takeovers: [], seq, records });
        const body = [
          ...new Replay({ run: RUN, resumable: false, cursor: 0 }).pieces(ended.records, []),
        ].join('');
        const stream = readingOf(body, { wire, events });
        const settled = before.tool_calls.filter(({ closed }) => closed !== undefined);
        if (settled.length > 0 && settled.length < before.tool_calls.length) open++;
        // The usage is lost.
        expect(stream.violations.filter((rule) => rule !== 'an end without a report')).toEqual([]);
        if (settled.length === 0) expect(stream.error).toBeDefined();
        else {
          expect(stream).toMatchObject({ done: true, finish: 'tool_calls' });
          expect(stream.toolCalls.map(({ id }) => id)).toEqual(settled.map(({ id }) => id));
        }
        expect(foldJournal(ended.records).tool_calls.every(({ closed }) => closed !== undefined)).toBe(
          settled.length > 0 || before.tool_calls.length === 0,
        );
      }
      // Calls that are held until they're complete are never open.
      expect(open > 0).toBe(events !== 'none');
    },
  );
});

describe('a response that is left over', () => {
  const said = {
    deltas: [{ kind: 'text', text: 'Kelp' }],
    payload: '{"type":"response.output_text.delta","delta":"Kelp"}',
  } as const;
  const failure = [
    '{"type":"error","error":{"message":"The stream was interrupted."}}',
    '{"type":"response.failed","response":{"status":"failed"}}',
  ].map((payload) => ({ deltas: [], payload }));

  test.each([
    ['was cut', 0, true],
    ['was announced to have failed', 1, false],
    ['has failed', 2, false],
  ])('is one that %s: %i events of its failure are stored', (_, count, expected) => {
    const events = [said, ...failure.slice(0, count)];
    const records = [
      { ...HEADER_RECORD, header: { ...HEADER, wire: 'responses' as const } },
      { seq: events.length, events },
    ];
    expect(isLeftOver({ ...salvaged('call_a'), seq: events.length, records })).toBe(expected);
  });
});
