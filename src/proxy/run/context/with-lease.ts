import { STORE_WAIT_MAX_MS } from '../../../checkpoint/best-effort-store.ts';
import type { Lease } from '../../../checkpoint/store.ts';
import { inTime } from '../../../lib/time.ts';
import type { RunContext } from './run-context.ts';

/**
 * Does what the lease was taken for. When that fails, releases the run: no other replica takes over what a
 * living replica holds, whether that one delivers it or not.
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

/** Waits for no slow store, and never rejects. */
export async function releaseLease(lease: Lease, { store, time, log }: RunContext): Promise<void> {
  const released = store.release(lease).catch((error: unknown) => {
    log.warn({ run: lease.run, err: error }, 'the lease of a run could not be released');
  });
  await inTime(released, time, STORE_WAIT_MAX_MS);
}
