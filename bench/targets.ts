import { existsSync } from 'node:fs';
import { findProgram } from './find-program.ts';
import type { Options } from './options.ts';
import { CLI_PATH, cliOf, startHoldfast } from './proxies/holdfast.ts';
import { startLitellm } from './proxies/litellm.ts';
import { findNginx, startNginx } from './proxies/nginx.ts';
import { startPipe } from './proxies/pipe.ts';
import { PORTKEY_VARIABLE, portkeyTarget } from './proxies/portkey.ts';
import { findRedis } from './redis.ts';
import { BEFORE, type StartTarget } from './target.ts';

export interface Targets {
  /** Targets to compare, in order, keyed by name. */
  readonly starts: ReadonlyMap<string, StartTarget>;
  /** Other gateways. They are far slower, so they are compared only where the load waits for its answers. */
  readonly gateways: ReadonlyMap<string, StartTarget>;
  /** Skipped targets and the reason for each. */
  readonly skipped: ReadonlyMap<string, string>;
}

/** `stores` are in the form that `startHoldfast` accepts. `before`: see {@link Options}. */
export function chooseTargets({ stores, before }: Pick<Options, 'stores' | 'before'>): Targets {
  const skipped = new Map<string, string>();
  const starts = new Map<string, StartTarget>([
    ['direct', (port) => Promise.resolve({ name: 'direct', port, stop: () => Promise.resolve() })],
    ['pipe', startPipe],
  ]);
  const nginx = findNginx();
  if (nginx === undefined) skipped.set('nginx', 'not installed');
  else starts.set('nginx', (port, directory) => startNginx(nginx, port, directory));
  for (const store of stores) {
    const name = holdfastName(store);
    if (!existsSync(CLI_PATH)) skipped.set(name, 'dist/cli.js is missing: run `npm run build`');
    else if (store.startsWith('redis') && !store.includes(':') && findRedis() === undefined) {
      skipped.set(name, 'redis-server is not installed');
    } else starts.set(name, (port, directory) => startHoldfast(name, store, port, directory));
  }

  const [first] = stores;
  if (before !== undefined && first !== undefined) {
    const cli = cliOf(before);
    if (!existsSync(cli)) throw new Error(`--before: ${cli} is missing: build the version in that clone`);
    starts.set(BEFORE, (port, directory) => startHoldfast(BEFORE, first, port, directory, cli));
  }

  const gateways = new Map<string, StartTarget>();
  const portkey = process.env[PORTKEY_VARIABLE];
  if (portkey === undefined) skipped.set('portkey', `${PORTKEY_VARIABLE} is not set`);
  else gateways.set('portkey', (port, directory) => portkeyTarget(portkey, port, directory));
  const litellm = findProgram('litellm');
  if (litellm === undefined) skipped.set('litellm', 'not installed');
  else gateways.set('litellm', (port, directory) => startLitellm(litellm, port, directory));
  return { starts, gateways, skipped };
}

/** For example, `redis://…,write_ahead` becomes `holdfast-redis-write_ahead`. */
export function holdfastName(store: string): string {
  return `holdfast-${store.replace(/:[^,]*/, '').replace(/\W/g, '-')}`;
}
