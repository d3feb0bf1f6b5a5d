// A process that journals many runs at full speed until it is killed. Started by kill.test.ts, with the directory as
// its argument.
import { CheckpointScheduler } from '../../../src/checkpoint/checkpoint-scheduler.ts';
import { FileStore } from '../../../src/checkpoint/file/file-store.ts';
import { JournalWriter } from '../../../src/checkpoint/journal-writer.ts';
import { systemTime } from '../../../src/lib/time.ts';
import { HEADER, newRunId, OWNER, textEvent } from '../fixtures.ts';
import { INTERVAL_MS, type KilledWriterReport, RUNS, wordAt } from './killed-writer-report.ts';

const [dir = ''] = process.argv.slice(2);
const fail = (error: unknown) => {
  throw error;
};
const store = new FileStore({ dir, ttl_ms: 3_600_000, lease_ms: 3000, onError: fail });
const scheduler = new CheckpointScheduler({ interval_ms: INTERVAL_MS, time: systemTime });

const journals = await Promise.all(
  Array.from({ length: RUNS }, async () => {
    const lease = await store.acquire(newRunId(), OWNER);
    const callbacks = { onAppend: () => {}, onError: fail, onStale: fail };
    return {
      run: lease.run,
      writer: new JournalWriter({ store, lease, scheduler, start: HEADER, ...callbacks }),
    };
  }),
);

function work(): void {
  for (const { writer } of journals) writer.record(textEvent(wordAt(writer.seq)));
  setImmediate(work);
}

function report(): void {
  const report: KilledWriterReport = {
    at_ms: Date.now(),
    runs: journals.map(({ run, writer }) => ({ run, recorded: writer.seq, stored: writer.stored_seq })),
  };
  process.send?.(report);
}

work();
setInterval(report, 10);
