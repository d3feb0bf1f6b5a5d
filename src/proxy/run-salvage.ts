import { Salvage } from '../checkpoint/salvage.ts';
import type { SalvagedRun } from '../checkpoint/salvaged-run.ts';
import { leaveThreadNote, salvageNote } from './notices/thread-notice.ts';
import type { RunContext } from './run.ts';

/** The salvage of a replica: threads are left their notes, and what is done is counted and logged. */
export function createRunSalvage({ configuration, store, time, random, metrics, log }: RunContext): Salvage {
  const { checkpoint, resume } = configuration;

  async function keep(salvaged: SalvagedRun): Promise<void> {
    const { owner, journal } = salvaged;
    const note = salvageNote(salvaged);
    const thread = journal.header?.thread;
    if (!resume.notices || !note || thread === undefined) return;
    await leaveThreadNote(store.notes, owner, thread, note, checkpoint.ttl_s * 1000);
  }

  return new Salvage({
    store,
    time,
    random,
    after_ms: resume.salvage_after_ms,
    keep,
    onSalvaged({ run, end: { status, cause }, journal: { seq } }) {
      metrics.salvagedRuns.inc({ status });
      log.warn({ run, status, cause, events: seq }, 'run salvaged');
    },
    onError(error, unreported) {
      log.warn({ err: error, unreported }, 'salvage failed: the store does not answer');
    },
  });
}
