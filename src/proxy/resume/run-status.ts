import { foldJournal } from '../../checkpoint/journal-fold.ts';
import type { FoldedSegment } from '../../checkpoint/segment-fold.ts';
import type { RunEnd, RunId, StoredRun } from '../../checkpoint/store.ts';
import { epochAt } from '../epoch.ts';

/**
 * A stored run as its owner is shown it. Only calls that are proven closed are listed: half a call is of no use to
 * anybody. What a damaged journal has lost of the header is `null`.
 */
export function runStatus(run: RunId, stored: StoredRun): object {
  const { header, text, reasoning, tool_calls, finish, segments } = foldJournal(stored.records);
  return {
    id: run,
    object: 'holdfast.run',
    wire: header?.wire ?? null,
    status: stored.status,
    created_at: header ? seconds(header.created_at_ms) : null,
    model: header?.model ?? null,
    upstream: header?.upstream ?? null,
    thread: header?.thread ?? null,
    cursor: stored.seq,
    epoch: stored.epoch,
    takeovers: stored.takeovers.length,
    holder: stored.holder.state,
    text,
    reasoning,
    tool_calls: tool_calls
      .filter(({ closed }) => closed !== undefined)
      .map(({ id, name, arguments: json }) => ({ id, name, arguments: json })),
    segments: segments.map((segment) => segmentOf(segment, stored)),
    finish_reason: finish ?? null,
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
