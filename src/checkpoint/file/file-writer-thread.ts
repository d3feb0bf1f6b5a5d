import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { sealWith } from '../seal.ts';
import { FileDirectory } from './file-directory.ts';
import { FileLog } from './file-log.ts';
import { INDEX_NAME, NOTES_NAME } from './file-names.ts';
import { FileNotes } from './file-notes.ts';
import { FileOrphans } from './file-orphans.ts';
import type {
  Answer,
  BatchMessage,
  RequestHandlers,
  RequestMessage,
  WriterThreadData,
} from './file-protocol.ts';
import { toRefusal } from './file-refusal.ts';
import { FileRunIndex } from './file-run-index.ts';
import { FileSweep, SWEEP_EVERY_MS } from './file-sweep.ts';

// A thread of its own, so that a disk that does not answer holds up checkpoints and nothing else.

if (!parentPort) throw new Error('file-writer-thread.ts runs as a worker thread only');
const port = parentPort;
const { dir, ttl_ms, complete_ttl_ms, lease_ms, fsync, replica, sealing_keys } =
  workerData as WriterThreadData;
const directory = new FileDirectory(dir);
const seal = sealing_keys.length > 0 ? sealWith(sealing_keys) : undefined;
const log = new FileLog({ directory, fsync, replica, seal });
const { epochs } = log;
const orphans = new FileOrphans({ directory, epochs, lease_ms });
const sweep = new FileSweep({ directory, epochs, ttl_ms, complete_ttl_ms, lease_ms });
const notes = new FileNotes({ directory: new FileDirectory(join(dir, NOTES_NAME)), replica });
const index = new FileRunIndex({ directory: directory.within(INDEX_NAME), runs: directory });
const answer = (message: Answer) => port.postMessage(message);

const handlers: RequestHandlers = {
  acquire: ({ slot, run, owner, after }) => log.acquire(slot, run, owner, after),
  finish: ({ slot, end, seq }) => log.finish(slot, end, seq),
  purge: ({ run, owner }) => {
    log.purge(run, owner);
    index.purge(owner, run);
  },
  release: ({ slot, seq }) => log.release(slot, seq),
  forget: ({ slot }) => log.forget(slot),
  orphans: ({ limit }) => orphans.find(limit),
  check: () => log.check(),
  put_note: ({ digest, text, expires_at_ms }) => notes.put(digest, text, expires_at_ms),
  claim_note: ({ digest, text, expires_at_ms, in_place_of }) =>
    notes.claim(digest, text, expires_at_ms, in_place_of),
  get_note: ({ digest }) => notes.get(digest),
  take_note: ({ digest }) => notes.take(digest),
  index_run: ({ owner, entry }) => index.add(owner, entry),
  indexed_runs: ({ owner }) => index.list(owner),
  forget_runs: ({ owner, entries }) => index.forget(owner, entries),
  close: () => {
    clearInterval(sweeping);
    for (const part of [sweep, orphans, notes, index, log]) part.close();
    port.close();
  },
};

port.on('message', (message: BatchMessage | RequestMessage) => {
  if (message.kind === 'batch') {
    answer({ kind: 'batch', refusals: log.appendBatch(message.text, message.meta) });
    return;
  }
  const { kind, id, request } = message;
  handle(kind, request).then(
    (result) => answer({ kind: 'done', id, answer: result }),
    (error: unknown) => answer({ kind: 'refused', id, refusal: toRefusal(error) }),
  );
});

async function handle(kind: RequestMessage['kind'], request: unknown): Promise<unknown> {
  return handlers[kind](request as never);
}

const sweeping = setInterval(() => {
  try {
    sweep.pass();
    notes.sweep();
    index.sweep();
  } catch (error) {
    answer({ kind: 'sweep_failed', refusal: toRefusal(error) });
  }
}, SWEEP_EVERY_MS);
