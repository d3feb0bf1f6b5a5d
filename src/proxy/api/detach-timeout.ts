import { STORE_WAIT_MAX_MS } from '../../checkpoint/best-effort-store.ts';
import { inTime } from '../../lib/time.ts';
import type { RunContext } from '../run/context/run-context.ts';
import type { DetachTimeout } from '../run/run-registry.ts';

/**
 * How long a run continues without its client on this replica. A reader anywhere leaves a note that it is there; while
 * the store does not say, there may be one.
 */
export const detachTimeoutOf = ({ configuration, store, time }: RunContext): DetachTimeout => ({
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
