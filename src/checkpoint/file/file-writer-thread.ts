import { parentPort, workerData } from 'node:worker_threads';
import { PrivateDirectory } from './private-directory.ts';
import type { FromThread, ToThread, WriterThreadData } from './protocol.ts';
import { toRefusal } from './refusal.ts';
import { RunDirectory } from './run-directory.ts';
import { UPKEEP_EVERY_MS } from './upkeep.ts';

// A separate thread, so that a disk that doesn't answer delays only checkpoints.

if (!parentPort) throw new Error('file-writer-thread.ts runs as a worker thread only');
const port = parentPort;
const say = (message: FromThread) => port.postMessage(message);
const fail = (error: unknown) => say({ kind: 'failed', refusal: toRefusal(error) });

const { dir, ...options } = workerData as WriterThreadData;
const runs = new RunDirectory({ ...options, directory: new PrivateDirectory(dir), onError: fail });
runs.open();
say({ kind: 'opened' });

port.on('message', (message: ToThread) => {
  if (message === 'close') {
    clearInterval(keeping);
    runs.close();
    port.close();
    return;
  }
  say({ kind: 'replies', replies: runs.perform(message) });
});

const keeping = setInterval(() => {
  try {
    runs.keep();
  } catch (error) {
    fail(error);
  }
}, UPKEEP_EVERY_MS);
