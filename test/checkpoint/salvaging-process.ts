// A process that salvages the runs in a file store and reports them. Started by salvage-processes.test.ts, with the
// directory as its argument.
import { FileStore } from '../../src/checkpoint/file/file-store.ts';
import { Salvage } from '../../src/checkpoint/salvage.ts';
import { systemTime } from '../../src/lib/time.ts';
import { LEASE_MS, SALVAGE_AFTER_MS, type SalvageReport } from './salvage-report.ts';

const [dir = ''] = process.argv.slice(2);
const report = (said: SalvageReport) => process.send?.(said);
const fail = (error: unknown) => report({ error: String(error) });
const store = new FileStore({ dir, ttl_ms: 3_600_000, lease_ms: LEASE_MS, onError: fail });
const salvage = new Salvage({
  store,
  time: systemTime,
  random: () => 0.5,
  after_ms: SALVAGE_AFTER_MS,
  keep: async ({ run }) => void report({ kept: run }),
  onSalvaged: ({ run, end }) => report({ salvaged: run, status: end.status }),
  onError: fail,
});
salvage.start();
process.on('disconnect', () => void salvage.close().then(() => store.close()));
