import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { findProgram } from './find-program.ts';
import { freePort, startProgram } from './processes.ts';

const PATIENCE_MS = 10_000;

export interface Redis {
  readonly url: string;
  /** Reads one number from `INFO`. */
  figure(name: string): Promise<number>;
  /** Calls of the named commands, calls of all commands, and the time spent in the named ones. */
  calls(...names: string[]): Promise<readonly [named: number, all: number, named_us: number]>;
  keys(): Promise<number>;
  stop(): Promise<void>;
}

/** Valkey speaks the same protocol and works equally well. */
export function findRedis(): string | undefined {
  return findProgram('redis-server', 'valkey-server');
}

/** Starts a dedicated server on a free port, without persistence. */
export async function startRedis(program: string, directory: string): Promise<Redis> {
  const port = await freePort();
  const home = join(directory, `redis-${port}`);
  mkdirSync(home, { recursive: true });
  const words = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--dir',
    home,
    '--save',
    '',
    '--appendonly',
    'no',
  ];
  const running = startProgram(program, words, join(home, 'output.log'));
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await info(port).catch(() => ''))) {
    if (performance.now() > deadline) throw new Error(`${program} did not answer within ${PATIENCE_MS} ms`);
    await pause(50);
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    async figure(name) {
      const value = new RegExp(`^${name}:(\\d+)`, 'm').exec(await info(port))?.[1];
      if (value === undefined) throw new Error(`INFO says nothing about ${name}`);
      return Number(value);
    },
    async calls(...names) {
      let [named, all, named_us] = [0, 0, 0];
      const lines = (await info(port, 'commandstats')).matchAll(/^cmdstat_([^:]+):calls=(\d+),usec=(\d+)/gm);
      for (const [, name = '', calls, usec] of lines) {
        all += Number(calls);
        if (!names.includes(name)) continue;
        named += Number(calls);
        named_us += Number(usec);
      }
      return [named, all, named_us];
    },
    async keys() {
      return Number(/^db0:keys=(\d+)/m.exec(await info(port))?.[1] ?? 0);
    },
    stop: () => running.stop(),
  };
}

/** Returns `INFO` as text. The reply is a bulk string, `$<bytes>\r\n<text>\r\n`. */
async function info(port: number, section = ''): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    socket.write(`INFO ${section}\r\n`);
    let answer = '';
    for await (const bytes of socket) {
      answer += bytes;
      const head = /^\$(\d+)\r\n/.exec(answer);
      if (head && answer.length >= head[0].length + Number(head[1])) return answer.slice(head[0].length);
    }
    throw new Error('the connection ended before the answer');
  } finally {
    socket.destroy();
  }
}
