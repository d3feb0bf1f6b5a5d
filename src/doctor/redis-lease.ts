import { newRunId } from '../checkpoint/owner.ts';
import type { Owner, Store } from '../checkpoint/store.ts';
import type { Configuration } from '../config/configuration.ts';
import { systemTime } from '../lib/time.ts';
import { openStore } from '../server/open-store.ts';
import { bounded, reasonOf } from './bounded.ts';
import type { Findings } from './finding.ts';
import { rounded_ms } from './latencies.ts';
import { splitMessage } from './refusal-parts.ts';

const LIMIT_MS = 15_000;
/** What the probe leaves behind is gone soon. */
const PROBE_TTL_S = 60;
/** Of nobody: no credential has this digest. */
const NOBODY = 'doctor'.padEnd(64, '-') as Owner;

/** Whether a run can be begun, ended and read: every script and right that a replica needs. */
export async function examineLease(findings: Findings, { checkpoint }: Configuration): Promise<void> {
  let store: Store | undefined;
  try {
    await bounded(LIMIT_MS, async () => {
      store = await openStore(checkpoint.store, {
        ...checkpoint,
        ttl_s: PROBE_TTL_S,
        on_unreachable: 'fail',
        time: systemTime,
        onError: () => {},
        onOutage: () => {},
        onRecovery: () => {},
      });
      const began_ms = performance.now();
      const run = newRunId();
      const lease = await store.acquire(run, NOBODY);
      await store.finish(lease, { status: 'cancelled', at_ms: Date.now() });
      const stored = await store.read(run, NOBODY, 0);
      if (stored?.status !== 'cancelled') throw new Error('what was written could not be read');
      const probe_ms = rounded_ms(performance.now() - began_ms);
      findings.ok('lease', `a run was begun, ended and read within ${probe_ms} ms`, { probe_ms });
    });
  } catch (error) {
    const message = error instanceof Error ? error.message : reasonOf(error);
    const [seen, remedy] = splitMessage(message);
    const isRight = message.includes('NOPERM');
    findings.fail(
      'lease',
      seen,
      isRight ? 'grant this user the commands and keys that docs/stores.md lists.' : remedy,
    );
  } finally {
    await store?.close().catch(() => {});
  }
}
