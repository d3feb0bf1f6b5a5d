import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import type { Missing } from '../debian-program.ts';

const run = promisify(execFile);
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;

/** The view of the machine that a program gets: the same as in a container. */
export interface Enclosure {
  readonly root: string;
  /** Directories and files of the machine, by their paths below the root. */
  readonly mounts: ReadonlyMap<string, string>;
  /** Excludes the mounts. */
  readonly isReadOnly: boolean;
  /** The working directory, as a path below the root. */
  readonly directory: string;
  /** `uid:gid` */
  readonly user: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** The program that encloses others, or the reason why this machine can't enclose programs. */
export function enclosures(): { readonly path: string } | Missing {
  if (process.platform !== 'linux') return { missing: 'there are no namespaces but on Linux' };
  const trial = spawnSync('unshare', ['--mount', '--pid', '--fork', 'mount', '-t', 'proc', 'proc', '/proc']);
  return trial.status === 0
    ? { path: 'unshare' }
    : { missing: 'this user may not make namespaces and mounts' };
}

/** Runs the program until it exits, and returns its output. Rejects with the output if it fails. */
export async function runEnclosed(enclosure: Enclosure, words: readonly string[]): Promise<string> {
  try {
    return (await run('unshare', enclosed(enclosure, words), { maxBuffer: OUTPUT_BYTES_MAX })).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${words.join(' ')}\n${stdout}\n${stderr}`);
  }
}

/** The first process of its namespace, as in a container. */
export interface EnclosedProcess {
  readonly child: ChildProcess;
  /** The process id outside the namespace. `docker stop` sends its signals to this process. */
  pid(): number;
  /** Kills the process, and with it every other process of its namespace. */
  kill(): void;
}

export function startEnclosed(enclosure: Enclosure, words: readonly string[]): EnclosedProcess {
  const child = spawn('unshare', enclosed(enclosure, words));
  const pid = () =>
    Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ')[0]);
  const kill = () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    // The process has changed its user and outlives `unshare`, so killing `unshare` isn't enough.
    const first = pid();
    if (first > 0) process.kill(first, 'SIGKILL');
    else child.kill('SIGKILL');
  };
  return { child, pid, kill };
}

/** Runs a program in the namespaces of the process `pid`, as `docker exec` and health checks do. */
export async function runBeside(pid: number, { user, environment }: Enclosure, words: readonly string[]) {
  const [uid = '', gid = ''] = user.split(':');
  const enter = ['--target', String(pid), '--mount', '--pid', '--root', '--wd', '-S', uid, '-G', gid, '--'];
  const child = spawn('nsenter', [...enter, ...words], { env: { ...environment } });
  let printed = '';
  for (const output of [child.stdout, child.stderr]) {
    output.on('data', (bytes: Buffer) => {
      printed += bytes.toString();
    });
  }
  const [status] = (await once(child, 'close')) as [number | null];
  return { status, printed };
}

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

/** The arguments of `unshare`. Each program on the way execs the next one, so that no intermediate process remains. */
function enclosed(enclosure: Enclosure, words: readonly string[]): string[] {
  const { root, mounts, isReadOnly, directory, user, environment } = enclosure;
  const [uid = '', gid = ''] = user.split(':');
  const change = ['--root', root, '--wd', directory, '--setuid', uid, '--setgid', gid, '--', ...words];
  const script = [
    'set -e',
    'unshare=$(command -v unshare) setpriv=$(command -v setpriv)',
    `mount --bind ${quoted(root)} ${quoted(root)}`,
    ...[...mounts].map(([at, from]) => `mount --bind ${quoted(from)} ${quoted(root + at)}`),
    `mount -t proc proc ${quoted(`${root}/proc`)}`,
    ...(isReadOnly ? [`mount -o remount,bind,ro ${quoted(root)}`] : []),
    // Clear the machine's environment.
    `exec env -i ${Object.entries(environment)
      .map(([name, value]) => quoted(`${name}=${value}`))
      .join(' ')} "$setpriv" --no-new-privs "$unshare" ${change.map(quoted).join(' ')}`,
  ].join('\n');
  return ['--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child', 'sh', '-c', script];
}
