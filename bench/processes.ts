import { type ChildProcess, fork, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';

// Fixed at 100 on every Linux architecture, whatever the kernel's own tick rate.
const TICKS_PER_SECOND = 100;

export interface Running {
  readonly process: ChildProcess;
  readonly pid: number;
  stop(): Promise<void>;
}

// Kills every started process when the benchmark exits, for whatever reason.
const alive = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

/** Starts a TypeScript entry point from this folder with an IPC channel. */
export function startScript(path: string, ...words: string[]): Running {
  return running(fork(path, words, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }));
}

/** Starts a program. Its output is appended to `log_path`; `environment` overrides this process's own variables. */
export function startProgram(
  program: string,
  words: readonly string[],
  log_path: string,
  environment: Readonly<Record<string, string>> = {},
): Running {
  const log = openSync(log_path, 'a');
  const stdio: StdioOptions = ['ignore', log, log];
  const child = spawn(program, words, { stdio, env: { ...process.env, ...environment } });
  closeSync(log);
  return running(child);
}

function running(child: ChildProcess): Running {
  if (child.pid === undefined) throw new Error(`could not start ${child.spawnfile}`);
  alive.add(child);
  const exited = once(child, 'exit').finally(() => alive.delete(child));
  return {
    process: child,
    pid: child.pid,
    async stop() {
      child.kill('SIGTERM');
      const overdue = setTimeout(() => child.kill('SIGKILL'), 5000);
      await exited;
      clearTimeout(overdue);
    },
  };
}

/** Resolves with the script's next IPC message. Rejects if the script exits first. */
export async function nextMessage<T>(script: Pick<Running, 'process'>): Promise<T> {
  const abort = new AbortController();
  const { signal } = abort;
  try {
    const message = once(script.process, 'message', { signal }).then(([value]) => value as T);
    const exit = once(script.process, 'exit', { signal }).then(([code]): never => {
      throw new Error(`${script.process.spawnargs.join(' ')} exited with ${code}`);
    });
    message.catch(() => {});
    exit.catch(() => {});
    return await Promise.race([message, exit]);
  } finally {
    abort.abort();
  }
}

/** A free port, for programs that can't choose one themselves. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port was free');
  return address.port;
}

export async function untilHttpOk(url: string, program: Running, patience_ms = 15_000): Promise<void> {
  const deadline = performance.now() + patience_ms;
  for (;;) {
    if (program.process.exitCode !== null) throw new Error(`exited before ${url} answered`);
    const response = await fetch(url).catch(() => undefined);
    await response?.arrayBuffer();
    if (response?.ok) return;
    if (performance.now() > deadline) throw new Error(`${url} did not answer within ${patience_ms} ms`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** CPU time in milliseconds (user and system) of a process, its threads and its children, in steps of 10 ms. */
export function cpuMilliseconds(pid: number): number {
  // The command name, in parentheses, may contain spaces: numbered fields start after it, at field 3.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
  const own_ms = ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
  return children(pid).reduce((sum, child) => sum + cpuMilliseconds(child), own_ms);
}

/** The exact CPU time in milliseconds of a process without children, if none of its threads ends meanwhile. */
export function exactCpuMilliseconds(pid: number): number {
  return readdirSync(`/proc/${pid}/task`).reduce((sum_ms, thread) => {
    const [nanoseconds] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ');
    return sum_ms + Number(nanoseconds) / 1e6;
  }, 0);
}

/** Resident memory in bytes of a process and its children. */
export function residentBytes(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return children(pid).reduce((sum, child) => sum + residentBytes(child), Number(kilobytes) * 1024);
}

/** Time in milliseconds that the machine was busy, summed over all cores. */
export function machineBusyMilliseconds(): number {
  const fields =
    readFileSync('/proc/stat', 'utf8').split('\n', 1)[0]?.split(/\s+/).slice(1).map(Number) ?? [];
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = fields;
  return ((user + nice + system + irq + softirq) * 1000) / TICKS_PER_SECOND;
}

export function children(pid: number): number[] {
  const listed = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return listed === '' ? [] : listed.split(' ').map(Number);
}
