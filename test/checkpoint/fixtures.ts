import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { JournalEvent, JournalRecord, RunHeader } from '../../src/checkpoint/journal.ts';
import type { Owner, RunEnd, RunId, Store } from '../../src/checkpoint/store.ts';

export const OWNER = 'a'.repeat(64) as Owner;
export const STRANGER = 'b'.repeat(64) as Owner;
export const SEALING_KEY = 'k'.repeat(32);
export const COMPLETE: RunEnd = { status: 'complete', at_ms: 1_700_000_001_000 };
export const HEADER: RunHeader = {
  wire: 'chat_completions',
  created_at_ms: 1_700_000_000_000,
  model: 'gpt-test',
  upstream: 'provider',
  events: 'none',
};
export const HEADER_RECORD: JournalRecord = { seq: 0, header: HEADER, events: [] };

export const newRunId = (): RunId => `run_${randomBytes(16).toString('base64url')}`;

export const textEvent = (text: string): JournalEvent => ({ deltas: [{ kind: 'text', text }] });

/** One record that says `texts`, one event each, after the event `after`. */
export const textRecord = (after: number, ...texts: string[]): JournalRecord => ({
  seq: after + texts.length,
  events: texts.map(textEvent),
});

export const textOf = (records: readonly JournalRecord[]): string =>
  records
    .flatMap(({ events }) => events)
    .flatMap(({ deltas }) => deltas)
    .map((delta) => ('text' in delta ? delta.text : ''))
    .join('');

/** A directory that is removed when the test ends. */
export function temporaryDirectory(): string {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-checkpoint-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** A finished run: the header and three records, the last of which closes a tool call and finishes. */
export const SMALL_RUN: readonly JournalRecord[] = [
  HEADER_RECORD,
  textRecord(0, 'Grüße', ' 🙂', ', world'),
  {
    seq: 5,
    events: [
      { deltas: [{ kind: 'tool_start', index: 0, id: 'call_a', name: 'forecast' }] },
      { deltas: [], payload: '{"id":"x","holdfast":{"type":"Recovered"}}' },
    ],
  },
  {
    seq: 7,
    events: [
      {
        deltas: [
          { kind: 'tool_arguments', index: 0, text: '{"city":"Paris"}' },
          { kind: 'tool_close', index: 0, proof: 3 },
        ],
      },
      { deltas: [{ kind: 'finish', reason: 'tool_calls' }] },
    ],
  },
];

export async function storeRun(store: Store, run: RunId, records: readonly JournalRecord[]): Promise<void> {
  const lease = await store.acquire(run, OWNER);
  for (const record of records) await store.append(lease, [record]);
  await store.finish(lease, COMPLETE);
}
