import { parentPort, workerData } from 'node:worker_threads';
import { PrivateDirectory } from './private-directory.ts';
import type { FromThread, Reply, ToThread, WriterThreadData } from './protocol.ts';
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
  const replies: Reply[] = [];
  const late: Promise<Reply>[] = [];
  for (const reply of runs.perform(message)) {
    if (reply instanceof Promise) late.push(reply);
    else replies.push(reply);
  }
  say({ kind: 'replies', replies });
  // Late replies all wait for the same disk, so they are sent together.
  if (late.length > 0) void Promise.all(late).then((known) => say({ kind: 'late', replies: known }));
});

const keeping = setInterval(() => {
  try {
    runs.keep();
  } catch (error) {
    fail(error);
  }
}, UPKEEP_EVERY_MS);
