import { expect, it } from 'vitest';
import type { StoredRun } from '../../../src/checkpoint/store.ts';
import { runStatus } from '../../../src/proxy/api/run-documents.ts';
import { HEADER, HEADER_RECORD, newRunId, SMALL_RUN, textRecord } from '../../checkpoint/fixtures.ts';

const RUN = newRunId();
const RUNNING: StoredRun = {
  status: 'running',
  epoch: 2,
  holder: { state: 'alive', silent_ms: 5 },
  takeovers: [{ seq: 1 }],
  seq: 2,
  records: [
    { ...HEADER_RECORD, header: { ...HEADER, thread: 'a thread', step: { task: 'T23', number: 3 } } },
    textRecord(0, 'Hel', 'lo'),
  ],
};

it('a run under way', () => {
  expect(runStatus(RUN, RUNNING)).toEqual({
    id: RUN,
    object: 'holdfast.run',
    parts: [{ type: 'text', text: 'Hello' }],
    wire: 'chat_completions',
    status: 'running',
    created_at: 1_700_000_000,
    model: 'gpt-test',
    upstream: 'provider',
    thread: 'a thread',
    task: 'T23',
    step: 3,
    step_name: null,
    continues: null,
    cursor: 2,
    epoch: 2,
    takeovers: 1,
    holder: 'alive',
    text: 'Hello',
    reasoning: '',
    tool_calls: [],
    unfinished_calls: [],
    segments: [],
    finish_reason: null,
    partial: true,
    end: null,
  });
});

it('a finished run, with the calls that were closed', () => {
  const end = { status: 'complete', at_ms: 1_700_000_001_999 } as const;
  const stored: StoredRun = { ...RUNNING, status: 'complete', end, seq: 7, records: SMALL_RUN };
  expect(runStatus(RUN, stored)).toMatchObject({
    status: 'complete',
    thread: null,
    task: null,
    step: null,
    step_name: null,
    cursor: 7,
    tool_calls: [{ id: 'call_a', name: 'forecast', arguments: '{"city":"Paris"}' }],
    finish_reason: 'tool_calls',
    partial: false,
    end: { status: 'complete', at: 1_700_000_001, cause: null },
  });
});

it('tools that the provider ran, with their results, and one whose result is not known', () => {
  const items = [{ type: 'mcp_call', id: 'mcp_1', output: 'ticket 7' }];
  const deltas = [
    { kind: 'provider_tool_start', id: 'mcp_1', name: 'create_ticket' },
    { kind: 'provider_tool_end', id: 'mcp_1', name: 'create_ticket', items },
    { kind: 'provider_tool_start', id: 'mcp_2', name: 'close_ticket' },
  ] as const;
  const [header, text] = RUNNING.records;
  const records = [header, text, { seq: 3, events: [{ deltas, payload: '{}' }] }].filter(
    (record) => record !== undefined,
  );
  expect(runStatus(RUN, { ...RUNNING, seq: 3, records })).toMatchObject({
    parts: [
      { type: 'text', text: 'Hello' },
      { type: 'provider_tool', id: 'mcp_1', name: 'create_ticket', result: 'settled', items },
      { type: 'provider_tool', id: 'mcp_2', name: 'close_ticket', result: 'unknown', items: [] },
    ],
  });
});

it('half a call is named and no more, and a run says why it ended', () => {
  const end = { status: 'recovered_from_partial', at_ms: 1_700_000_001_000, cause: 'lost' } as const;
  const stored: StoredRun = { ...RUNNING, status: end.status, end, records: SMALL_RUN.slice(0, 3) };
  expect(runStatus(RUN, stored)).toMatchObject({
    text: 'Grüße 🙂, world',
    tool_calls: [],
    unfinished_calls: [{ id: 'call_a', name: 'forecast' }],
    partial: true,
    end: { status: 'recovered_from_partial', cause: 'lost' },
  });
});

it('a run of which nothing can be read', () => {
  expect(runStatus(RUN, { ...RUNNING, seq: 0, records: [] })).toMatchObject({
    wire: null,
    created_at: null,
    model: null,
    text: '',
    status: 'running',
  });
});

it('a run of which one replica said the beginning, its client had more, and another continued it', () => {
  const records: StoredRun['records'] = [
    HEADER_RECORD,
    {
      seq: 1,
      events: [
        {
          deltas: [
            { kind: 'segment', attempt: 1, upstream: 'provider', mode: 'first' },
            { kind: 'text', text: 'Kelp' },
          ],
        },
      ],
    },
    {
      seq: 3,
      events: [
        {
          deltas: [
            { kind: 'segment', mode: 'brought' },
            { kind: 'text', text: ' holds' },
          ],
        },
        {
          deltas: [
            {
              kind: 'segment',
              attempt: 2,
              upstream: 'backup',
              model: 'llama-4',
              mode: 'nudge',
              plan: 'R1',
              cause: 'connection_reset',
              compressed: { messages: 8, characters: 9000, summary_characters: 700 },
            },
            { kind: 'text', text: ' fast.' },
          ],
        },
      ],
    },
  ];
  const none = { refusal: 0, reasoning: 0, calls: 0 };
  const unknown = { model: null, plan: null, cause: null, compressed: null, discarded: false };
  expect(runStatus(RUN, { ...RUNNING, seq: 3, records })).toMatchObject({
    text: 'Kelp holds fast.',
    segments: [
      {
        ...unknown,
        attempt: 1,
        epoch: 1,
        upstream: 'provider',
        mode: 'first',
        from: 1,
        to: 1,
        characters: { ...none, text: 4 },
      },
      {
        ...unknown,
        attempt: null,
        epoch: 2,
        upstream: null,
        mode: 'brought',
        from: 2,
        to: 2,
        characters: { ...none, text: 6 },
      },
      {
        attempt: 2,
        epoch: 2,
        upstream: 'backup',
        model: 'llama-4',
        mode: 'nudge',
        plan: 'R1',
        cause: 'connection_reset',
        compressed: { messages: 8, characters: 9000, summary_characters: 700 },
        from: 3,
        to: 3,
        characters: { ...none, text: 6 },
        discarded: false,
      },
    ],
  });
});
