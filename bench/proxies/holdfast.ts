import { randomUUID } from 'node:crypto';
import { join, resolve } from 'node:path';
import { freePort, startProgram, untilHttpOk } from '../processes.ts';
import { findRedis, type Redis, startRedis } from '../redis.ts';
import type { Target } from '../target.ts';

const CLI = 'dist/cli.js';
export const CLI_PATH = join(import.meta.dirname, '../..', CLI);

/** The command-line program of the build in another clone. */
export const cliOf = (clone: string): string => resolve(clone, CLI);

/**
 * Starts Holdfast as a new user would: no Node flags, default configuration. `spec` is a store as the command line
 * accepts it; a bare `file` gets its own folder and a bare `redis` its own server. A trailing `,write_ahead` selects
 * that durability. `cli`: the program of the build to start.
 */
export async function startHoldfast(
  name: string,
  spec: string,
  upstream_port: number,
  directory: string,
  cli: string = CLI_PATH,
): Promise<Target> {
  const [store = spec, durability] = spec.split(',');
  const redis = store === 'redis' ? await startOwnRedis(directory) : undefined;
  const [port, admin_port] = [await freePort(), await freePort()];
  const words = [
    ...[cli, 'serve', '--port', String(port), '--admin-port', String(admin_port)],
    ...['--upstream', `http://127.0.0.1:${upstream_port}/v1`],
    ...['--store', redis?.url ?? (store === 'file' ? `file:${join(directory, 'store')}` : store)],
  ];
  const environment = {
    // Only speeds up stopping.
    HOLDFAST_LIMITS_DRAIN_DELAY_MS: '0',
    // Replicas on a shared store require an explicit secret.
    ...(store.startsWith('redis') && { HOLDFAST_SECRET: randomUUID() }),
    ...(durability !== undefined && { HOLDFAST_CHECKPOINT_DURABILITY: durability }),
  };
  const running = startProgram(process.execPath, words, join(directory, `${name}.log`), environment);
  await untilHttpOk(`http://127.0.0.1:${admin_port}/readyz`, running);
  return {
    name,
    port,
    pid: running.pid,
    ...(redis && { storedBytes: () => redis.figure('total_net_input_bytes') }),
    async stop() {
      await running.stop();
      await redis?.stop();
    },
  };
}

function startOwnRedis(directory: string): Promise<Redis> {
  const program = findRedis();
  if (program === undefined) throw new Error('redis-server is not installed');
  return startRedis(program, directory);
}
