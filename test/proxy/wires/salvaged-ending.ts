import type { JournalEvent, WireName } from '../../../src/checkpoint/journal.ts';
import { withEnding } from '../../../src/proxy/resume/stored-ending.ts';
import { HEADER, newRunId } from '../../checkpoint/fixtures.ts';

/** The events that end a salvaged run, of which `sent` was delivered. */
export function salvagedEnding(wire: WireName, sent: readonly JournalEvent[]): readonly JournalEvent[] {
  const status = 'recovered_from_partial';
  const { records } = withEnding(newRunId(), {
    status,
    end: { status, at_ms: 1 },
    epoch: 2,
    holder: { state: 'released' },
    takeovers: [],
    seq: sent.length,
    records: [
      { seq: 0, header: { ...HEADER, wire }, events: [] },
      { seq: sent.length, events: sent },
    ],
  });
  return records.at(-1)?.events ?? [];
}
