import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { type Enclosure, runBeside, startEnclosed } from './enclosure.ts';
import type { Image } from './image-build.ts';

/** A container engine creates these, or mounts over them. */
const MOUNT_POINTS = ['proc', 'dev', 'etc/hosts', 'etc/resolv.conf'];

export interface ContainerOptions {
  /** The directory of the machine that is mounted as the image's volume. */
  readonly volume: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Replaces the image's command. */
  readonly command?: readonly string[];
  readonly mounts?: ReadonlyMap<string, string>;
}

/** Starts a container with a read-only root and waits until it listens. Kills it when the test ends. */
export async function startContainer({ root, configuration }: Image, options: ContainerOptions) {
  const { volume, environment, command = configuration.command, mounts = [] } = options;
  for (const directory of MOUNT_POINTS.slice(0, 2)) mkdirSync(join(root, directory), { recursive: true });
  for (const file of MOUNT_POINTS.slice(2)) writeFileSync(join(root, file), '');
  const [directory = ''] = configuration.volumes;
  const enclosure: Enclosure = {
    root,
    mounts: new Map([
      [directory, volume],
      ['/etc/hosts', '/etc/hosts'],
      ['/etc/resolv.conf', '/etc/resolv.conf'],
      ...mounts,
    ]),
    isReadOnly: true,
    directory: configuration.directory,
    user: configuration.user,
    environment: { ...configuration.environment, ...environment },
  };
  const { child, pid, kill } = startEnclosed(enclosure, [...configuration.entrypoint, ...command]);
  onTestFinished(kill);
  const exit = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;

  const log: Record<string, unknown>[] = [];
  let complaints = '';
  const listening = Promise.withResolvers<{ api: string; admin: string }>();
  if (!child.stdout || !child.stderr) throw new Error('the container has no output');
  createInterface(child.stdout).on('line', (line) => {
    const entry = JSON.parse(line);
    log.push(entry);
    if (entry.msg === 'listening') listening.resolve(entry);
  });
  child.stderr.on('data', (bytes: Buffer) => {
    complaints += bytes.toString();
  });
  void exit.then(() => listening.reject(new Error(`it ended: ${complaints}`)));
  const { api, admin } = await listening.promise;
  return {
    api: reachable(api),
    admin: reachable(admin),
    pid: pid(),
    exit,
    log,
    /** Runs the image's health check as an engine does. */
    health: () => runBeside(pid(), enclosure, configuration.healthCheck),
    run: (words: readonly string[]) => runBeside(pid(), enclosure, words),
  };
}

const reachable = (url: string): string => url.replace('//0.0.0.0:', '//127.0.0.1:');
