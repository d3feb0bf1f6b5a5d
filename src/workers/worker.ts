import cluster from 'node:cluster';
import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DestinationStream } from 'pino';
import type { Configuration } from '../config/configuration.ts';
import type { LoadedConfiguration } from '../config/load.ts';
import { createLogger } from '../lib/log.ts';
import { openReplica, type Replica } from '../server/replica.ts';
import type { FromWorker, ToWorker } from './messages.ts';
import { partOf } from './shared-metrics.ts';

const EXIT_FAILURE = 1;

/**
 * Runs one replica in a process that the supervisor forked, until the supervisor stops it or is gone. Resolves with the
 * exit status. `output`: creates the destination of the log's lines.
 */
export async function runWorker(
  output: (settings: Configuration['log']) => DestinationStream,
): Promise<number> {
  // A terminal sends these to all its processes; the supervisor decides what to do.
  process.on('SIGINT', () => {});
  process.on('SIGHUP', () => {});
  const ending = Promise.withResolvers<{ readonly isLeaving: boolean }>();
  process.on('SIGTERM', () => ending.resolve({ isLeaving: true }));
  cluster.worker?.once('disconnect', () => {
    // Otherwise the library would exit at once and cut off the clients' streams.
    if (cluster.worker) cluster.worker.exitedAfterDisconnect = true;
    ending.resolve({ isLeaving: false });
  });

  const order = Promise.withResolvers<Extract<ToWorker, { kind: 'start' }>>();
  let replica: Replica | undefined;
  /** The configuration that the next reload applies. */
  let loaded: LoadedConfiguration | undefined;
  process.on('message', (message: ToWorker) => {
    switch (message.kind) {
      case 'start':
        return order.resolve(message);
      case 'stop':
        return ending.resolve(message);
      case 'metrics':
        return void answer(message.id, () => (replica ? partOf(replica.metrics) : []));
      case 'reload':
        return void answer(message.id, () => {
          loaded = message.loaded;
          return replica?.reload(message.cause);
        });
    }
  });
  await tell({ kind: 'born' });

  const serving = async (): Promise<Replica> => {
    const { place, configuration } = await order.promise;
    const log = createLogger(configuration.log.level, output(configuration.log)).child({
      worker: place.number,
    });
    const opened = await openReplica({
      configuration,
      load: () => loaded ?? { configuration, warnings: [] },
      log,
      worker: place,
    });
    await opened.listen();
    return opened;
  };
  try {
    replica = await Promise.race([serving(), ending.promise.then(() => undefined)]);
  } catch (error) {
    const { name, message, stack = message } = error as Error;
    await tell({ kind: 'failed', name, message: name === 'Error' ? stack : message });
    return EXIT_FAILURE;
  }
  if (!replica) return 0;
  await tell({ kind: 'listening' });

  const { isLeaving } = await ending.promise;
  await (isLeaving ? replica.leave() : replica.stop());
  await tell({ kind: 'ended', metrics: await partOf(replica.metrics) });
  // The supervisor, which created the directory, was killed.
  if (!process.connected)
    rmSync(dirname((await order.promise).place.admin_socket), { recursive: true, force: true });
  return 0;
}

async function answer(id: number, find: () => unknown): Promise<void> {
  try {
    await tell({ kind: 'answer', id, value: await find() });
  } catch (error) {
    await tell({ kind: 'refusal', id, reason: error instanceof Error ? error.message : String(error) });
  }
}

/** Resolves once the message was sent or can't be. */
const tell = (message: FromWorker): Promise<void> =>
  new Promise((resolve) => {
    if (process.connected) process.send?.(message, () => resolve());
    else resolve();
  });
