// A process that journals runs until it is killed. Started by torture.test.ts, with the directory as its argument.
import { CheckpointScheduler } from '../../../src/checkpoint/checkpoint-scheduler.ts';
import { FileStore } from '../../../src/checkpoint/file/file-store.ts';
import { JournalWriter } from '../../../src/checkpoint/journal-writer.ts';
import { systemTime } from '../../../src/lib/time.ts';
import { HEADER, newRunId, OWNER, textEvent } from '../fixtures.ts';
import { INTERVAL_MS, type KilledWriterReport, wordAt } from './killed-writer-report.ts';

/** Two of these processes together have fifty open runs. */
const RUNS = 25;
const SEGMENT_BYTES = 512 * 1024;
const EVENT_EVERY_MS = 3;
/** A run ends after this many events, and the next one begins. */
const EVENTS_MAX = 400;

const [dir = ''] = process.argv.slice(2);
const fail = (error: unknown) => {
  throw error;
};
const options = { ttl_ms: 3_600_000, lease_ms: 3000, segment_bytes: SEGMENT_BYTES } as const;
const store = new FileStore({ dir, ...options, onError: fail });
const scheduler = new CheckpointScheduler({ interval_ms: INTERVAL_MS, time: systemTime });

async function begin() {
  const lease = await store.acquire(newRunId(), OWNER);
  const callbacks = { onAppend: () => {}, onError: fail, onStale: fail };
  const writer = new JournalWriter({ store, lease, scheduler, start: HEADER, ...callbacks });
  return { run: lease.run, writer };
}

const journals = await Promise.all(Array.from({ length: RUNS }, begin));

setInterval(() => {
  for (const [position, { writer }] of journals.entries()) {
    if (writer.seq < EVENTS_MAX + position * 10) writer.record(textEvent(wordAt(writer.seq)));
    else void replace(position);
  }
}, EVENT_EVERY_MS);

const ending = new Set<number>();
async function replace(position: number): Promise<void> {
  if (ending.has(position)) return;
  ending.add(position);
  await journals[position]?.writer.close({ status: 'complete' });
  journals[position] = await begin();
  ending.delete(position);
}

setInterval(() => {
  const runs = journals.map(({ run, writer }) => ({ run, recorded: writer.seq, stored: writer.stored_seq }));
  process.send?.({ at_ms: Date.now(), runs } satisfies KilledWriterReport);
}, 10);
