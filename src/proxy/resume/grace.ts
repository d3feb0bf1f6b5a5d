import { inTime } from '../../time.ts';
import type { Grace } from '../active-run.ts';
import type { RunContext } from '../run.ts';
import { STORE_WAIT_MAX_MS } from '../store-patience.ts';

/**
 * How long a run goes on without its client on this replica. A reader anywhere leaves a note that it is there; while
 * the store does not say, there may be one.
 */
export const graceOf = ({ configuration, store, time }: RunContext): Grace => ({
  time,
  detached_ms: configuration.resume.detached_ms,
  async isRead(run, owner) {
    const note = store.notes.get(owner, { kind: 'reader', name: run });
    const isNoted = note.then(
      (value) => value !== undefined,
      () => undefined,
    );
    return (await inTime(isNoted, time, STORE_WAIT_MAX_MS)) ?? true;
  },
});
