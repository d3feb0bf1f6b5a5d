import { foldJournal } from '../../checkpoint/journal-fold.ts';
import type { RunEnd, RunId, StoredRun } from '../../checkpoint/store.ts';

/**
 * A stored run as its owner is shown it. Only calls that are proven closed are listed: half a call is of no use to
 * anybody. What a damaged journal has lost of the header is `null`.
 */
export function runStatus(run: RunId, stored: StoredRun): object {
  const { header, text, reasoning, tool_calls, finish } = foldJournal(stored.records);
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
    finish_reason: finish ?? null,
    partial: stored.status !== 'complete',
    end: stored.end ? endOf(stored.end) : null,
  };
}

const endOf = ({ status, at_ms, cause }: RunEnd) => ({ status, at: seconds(at_ms), cause: cause ?? null });

const seconds = (time_ms: number): number => Math.floor(time_ms / 1000);
