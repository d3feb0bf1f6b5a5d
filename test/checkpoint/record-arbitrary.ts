import fc from 'fast-check';
import type { JournalEvent, JournalRecord, RunHeader } from '../../src/checkpoint/journal.ts';
import type { Delta, Usage } from '../../src/plans/delta.ts';
import { MODES } from '../../src/plans/seam/mode.ts';

/** Any UTF-16: emoji, lone surrogates, control characters, line separators. */
const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 8 }),
  fc.string({ unit: 'binary', maxLength: 8 }),
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 6 })
    .map((units) => String.fromCharCode(...units)),
  fc.constantFrom('\ud83d', '\ude42', '\n', '\r\n', '\u2028', '\u0000', '\ufeff', '"\\'),
);
const index = fc.nat(3);

const usage: fc.Arbitrary<Usage> = fc
  .record({ prompt_tokens: fc.nat(), completion_tokens: fc.nat(), total_tokens: fc.nat() })
  .map((totals) => ({ ...totals, completion_tokens_details: { reasoning_tokens: 3 }, queue_time: null }));

const mergedDelta: fc.Arbitrary<Delta> = fc.oneof(
  fc.record({ kind: fc.constantFrom('text', 'refusal', 'reasoning'), text }),
  fc.record({ kind: fc.constant('tool_arguments'), index, text }),
);

const delta: fc.Arbitrary<Delta> = fc.oneof(
  mergedDelta,
  fc.record({ kind: fc.constant('tool_start'), index, id: text, name: text }),
  fc.record({ kind: fc.constant('tool_close'), index, proof: fc.constantFrom(1, 2, 3) }),
  fc.record({ kind: fc.constant('tool_cancel'), index }),
  fc.record({ kind: fc.constant('finish'), reason: text }),
  fc.record({ kind: fc.constant('usage'), usage }),
  fc.record(
    {
      kind: fc.constant('segment'),
      attempt: fc.nat(),
      upstream: text,
      model: text,
      mode: fc.constantFrom('first', ...MODES, 'brought'),
      plan: fc.constantFrom('R1', 'R3', 'R4'),
      cause: fc.constantFrom('connection_reset', 'idle_stall'),
      compressed: fc.record({ messages: fc.nat(), characters: fc.nat(), summary_characters: fc.nat() }),
    },
    { requiredKeys: ['kind', 'mode'] },
  ),
);

const event: fc.Arbitrary<JournalEvent> = fc.oneof(
  { weight: 4, arbitrary: mergedDelta.map((only) => ({ deltas: [only] })) },
  { weight: 1, arbitrary: fc.record({ deltas: fc.array(delta, { maxLength: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ deltas: fc.array(delta, { maxLength: 2 }), payload: text }) },
);

const header: fc.Arbitrary<RunHeader> = fc.record(
  {
    wire: fc.constant('chat_completions'),
    created_at_ms: fc.nat(),
    model: text,
    upstream: text,
    events: fc.constantFrom('none', 'chunks', 'comments'),
    thread: text,
    step: fc.record(
      { task: text, number: fc.nat(), name: text, parent: text },
      { requiredKeys: ['task', 'number'] },
    ),
    body: text,
  },
  { requiredKeys: ['wire', 'created_at_ms', 'model', 'upstream', 'events'] },
);

export const anyRecord: fc.Arbitrary<JournalRecord> = fc.oneof(
  fc.record(
    { seq: fc.nat(), at_ms: fc.nat(), events: fc.array(event, { maxLength: 12 }) },
    { requiredKeys: ['seq', 'events'] },
  ),
  fc.record(
    { seq: fc.constant(0), at_ms: fc.nat(), header, events: fc.constant([]) },
    { requiredKeys: ['seq', 'header', 'events'] },
  ),
);
