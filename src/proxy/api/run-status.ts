import { epochAt } from '../../checkpoint/epoch.ts';
import { type FoldedSegment, foldJournal, settledCalls } from '../../checkpoint/journal-fold.ts';
import type { RunEnd, RunId, StoredRun } from '../../checkpoint/store.ts';
import { partsOf } from '../../plans/outcome.ts';
import type { HeldCalls } from '../../plans/tool-call.ts';
import { unfinishedCalls } from '../run/notices/held-calls.ts';

/**
 * A stored run as its owner is shown it. Only calls that are proven closed are listed with their arguments: half a call
 * is of no use except for its name. `held`: as noted.
 */
export function runStatus(run: RunId, stored: StoredRun, held?: HeldCalls): object {
  const journal = foldJournal(stored.records);
  const { text, reasoning, refusal, providerTools, finish, segments } = journal;
  const calls = settledCalls(journal);
  return {
    ...runSummary(run, stored),
    text,
    reasoning,
    tool_calls: calls.map(({ id, name, arguments: json }) => ({ id, name, arguments: json })),
    unfinished_calls: stored.status === 'complete' ? [] : unfinishedCalls(journal, held),
    parts: partsOf({ reasoning, text, refusal, calls, providerTools }),
    segments: segments.map((segment) => segmentOf(segment, stored)),
    finish_reason: finish ?? null,
  };
}

/** The same without anything of what it says. What a damaged journal has lost of the header is `null`. */
export function runSummary(run: RunId, stored: StoredRun): object {
  const header = stored.records[0]?.header;
  return {
    id: run,
    object: 'holdfast.run',
    wire: header?.wire ?? null,
    status: stored.status,
    created_at: header ? seconds(header.created_at_ms) : null,
    model: header?.model ?? null,
    upstream: header?.upstream ?? null,
    thread: header?.thread ?? null,
    continues: header?.continues ?? null,
    cursor: stored.seq,
    epoch: stored.epoch,
    takeovers: stored.takeovers.length,
    holder: stored.holder.state,
    partial: stored.status !== 'complete',
    end: stored.end ? endOf(stored.end) : null,
  };
}

const segmentOf = (segment: FoldedSegment, { takeovers }: StoredRun) => ({
  attempt: segment.attempt ?? null,
  epoch: epochAt(segment.from, takeovers),
  upstream: segment.upstream ?? null,
  model: segment.model ?? null,
  mode: segment.mode,
  plan: segment.plan ?? null,
  cause: segment.cause ?? null,
  compressed: segment.compressed ?? null,
  from: segment.from,
  to: segment.to,
  characters: segment.characters,
  discarded: segment.discarded,
});

const endOf = ({ status, at_ms, cause }: RunEnd) => ({ status, at: seconds(at_ms), cause: cause ?? null });

const seconds = (time_ms: number): number => Math.floor(time_ms / 1000);
