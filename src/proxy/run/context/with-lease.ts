import { STORE_WAIT_MAX_MS } from '../../../checkpoint/best-effort-store.ts';
import type { Lease } from '../../../checkpoint/store.ts';
import { inTime } from '../../../lib/time.ts';
import type { RunContext } from './run-context.ts';

/**
 * Runs `work` under a lease, and releases the lease if it fails: no other replica takes over a run that a living
 * replica holds.
 */
export async function withLease<Result>(
  lease: Lease,
  work: () => Promise<Result>,
  context: RunContext,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    await releaseLease(lease, context);
    throw error;
  }
}

/** Bounded by a timeout, and never rejects. */
export async function releaseLease(lease: Lease, { store, time, log }: RunContext): Promise<void> {
  const released = store.release(lease).catch((error: unknown) => {
    log.warn({ run: lease.run, err: error }, 'the lease of a run could not be released');
  });
  await inTime(released, time, STORE_WAIT_MAX_MS);
}
