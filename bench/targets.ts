import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { findNginx, startNginx } from './nginx.ts';
import { freePort, nextMessage, startProgram, startScript, untilHttpOk } from './processes.ts';
import { findRedis, type Redis, startRedis } from './redis.ts';
import type { StartTarget } from './target.ts';

/**
 * As `npm start` runs it. The young generation would otherwise grow to three times 16 MB, which is memory that streams
 * are charged for, and makes for the longer pauses.
 */
const NODE_FLAGS = ['--max-semi-space-size=8'];

export const CLI_PATH = join(import.meta.dirname, '../dist/cli.js');

const startPipe: StartTarget = async (upstream_port) => {
  const script = startScript(join(import.meta.dirname, 'pipe-proxy.ts'), String(upstream_port));
  const { port } = await nextMessage<{ port: number }>(script);
  return { name: 'pipe', port, pid: script.pid, stop: () => script.stop() };
};

const startDirect: StartTarget = (upstream_port) =>
  Promise.resolve({ name: 'direct', port: upstream_port, stop: () => Promise.resolve() });

/**
 * `store` as the command line takes it; a bare `file` gets a temporary folder, a bare `redis` a server of its own.
 * `,write_ahead` at the end asks for that durability.
 */
function startHoldfast(name: string, spec: string): StartTarget {
  return async (upstream_port, directory) => {
    const [store = spec, durability = 'interval'] = spec.split(',');
    const redis = store === 'redis' ? await startOwnRedis(directory) : undefined;
    const [port, admin_port] = [await freePort(), await freePort()];
    const words = [
      ...[...NODE_FLAGS, CLI_PATH, 'serve', '--port', String(port), '--admin-port', String(admin_port)],
      ...['--upstream', `http://127.0.0.1:${upstream_port}/v1`],
      ...['--store', redis?.url ?? (store === 'file' ? `file:${join(directory, `${name}-store`)}` : store)],
    ];
    const environment = {
      HOLDFAST_SECRET: randomUUID(),
      HOLDFAST_CHECKPOINT_DURABILITY: durability,
      HOLDFAST_LIMITS_DRAIN_DELAY_MS: '0',
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
  };
}

function startOwnRedis(directory: string): Promise<Redis> {
  const program = findRedis();
  if (program === undefined) throw new Error('redis-server is not installed');
  return startRedis(program, directory);
}

/**
 * What is compared, in order. The first store is the one the budgets are about; further ones are measured beside it.
 * The second value says what is left out and why.
 */
export function chooseTargets(stores: readonly string[]): {
  starts: Map<string, StartTarget>;
  skipped: Map<string, string>;
} {
  const starts = new Map<string, StartTarget>([
    ['direct', startDirect],
    ['pipe', startPipe],
  ]);
  const skipped = new Map<string, string>();
  const nginx = findNginx();
  if (nginx === undefined) skipped.set('nginx', 'not installed');
  else starts.set('nginx', (upstream_port, directory) => startNginx(nginx, upstream_port, directory));
  if (!existsSync(CLI_PATH)) skipped.set('holdfast', 'dist/cli.js is missing: run `npm run build`');
  else {
    for (const [index, store] of stores.entries()) {
      const name = index === 0 ? 'holdfast' : `holdfast-${store.replace(/:[^,]*/, '').replace(/\W/g, '-')}`;
      if (store.startsWith('redis') && !store.includes(':') && findRedis() === undefined) {
        skipped.set(name, 'redis-server is not installed');
      } else starts.set(name, startHoldfast(name, store));
    }
  }
  return { starts, skipped };
}
