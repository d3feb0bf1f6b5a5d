import { parentPort, workerData } from 'node:worker_threads';
import { type Claim, FileLog, toRefusal } from './file-log.ts';
import type { Answer, BatchMessage, Request, RequestMessage, WriterThreadData } from './file-protocol.ts';
import { FileSweep, SWEEP_EVERY_MS } from './file-sweep.ts';

// A thread of its own, so that a disk that does not answer holds up checkpoints and nothing else.

if (!parentPort) throw new Error('file-writer-thread.ts runs as a worker thread only');
const port = parentPort;
const { dir, ttl_ms, fsync } = workerData as WriterThreadData;
const log = new FileLog({ dir, fsync });
const sweep = new FileSweep({ dir, ttl_ms });
const answer = (message: Answer) => port.postMessage(message);

port.on('message', (message: BatchMessage | RequestMessage) => {
  if (message.kind === 'batch') {
    answer({ kind: 'batch', refused: log.appendBatch(message.text, message.meta) });
    return;
  }
  const { id, request } = message;
  perform(request).then(
    (claim) => answer(claim ? { kind: 'done', id, claim } : { kind: 'done', id }),
    (error: unknown) => answer({ kind: 'refused', id, refusal: toRefusal(error) }),
  );
});

async function perform(request: Request): Promise<Claim | undefined> {
  switch (request.kind) {
    case 'acquire':
      return log.acquire(request.slot, request.run, request.owner);
    case 'finish':
      await log.finish(request.slot, request.status, request.seq);
      return undefined;
    case 'release':
      log.release(request.slot);
      return undefined;
    case 'check':
      log.check();
      return undefined;
    case 'close':
      clearInterval(sweeping);
      sweep.close();
      log.close();
      port.close();
      return undefined;
  }
}

const sweeping = setInterval(() => {
  const now_ms = Date.now();
  try {
    log.touch(now_ms / 1000);
    sweep.pass(now_ms, log.heldRuns());
  } catch (error) {
    answer({ kind: 'sweep_failed', refusal: toRefusal(error) });
  }
}, SWEEP_EVERY_MS);
