import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { debianProgram, type Missing } from '../debian-program.ts';
import type { Snippet } from './pages.ts';

const run = promisify(execFile);

/** The path of a load balancer, or why this machine has none. */
export const balancer = (name: 'haproxy' | 'nginx') => debianProgram(name);

/** The hostnames in the examples don't resolve here. */
const here = (code: string): string => code.replace(/\bholdfast-\d(?=:)/g, '127.0.0.1');

export async function haproxy({ code }: Snippet, directory: string): Promise<Missing | undefined> {
  const program = await balancer('haproxy');
  if ('missing' in program) return program;
  const path = join(directory, 'haproxy.cfg');
  await writeFile(path, here(code));
  await run(program.path, ['-c', '-f', path]);
  return undefined;
}

export async function nginx({ code }: Snippet, directory: string): Promise<Missing | undefined> {
  const program = await balancer('nginx');
  if ('missing' in program) return program;
  const path = join(directory, 'nginx.conf');
  await writeFile(path, asWhole(here(code), directory));
  await run(program.path, ['-t', '-e', join(directory, 'error.log'), '-p', directory, '-c', path]);
  return undefined;
}

/** Wraps a fragment of an nginx configuration in the blocks it needs to stand alone. */
export function asWhole(code: string, directory: string): string {
  if (/^\s*events\b/m.test(code)) return code;
  const http = /^\s*http\b/m.test(code) ? code : `http {\naccess_log off;\n${code}\n}`;
  return `pid ${join(directory, 'nginx.pid')};\nevents {}\n${http}\n`;
}
