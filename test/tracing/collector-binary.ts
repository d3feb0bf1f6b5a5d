import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { inPath } from '../debian-program.ts';
import { MAY_INSTALL, notInstalled } from '../installs.ts';
import type { ServerBinary } from '../redis/binaries.ts';

const SOURCE = fileURLToPath(new URL('otelcol', import.meta.url));
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/holdfast-otelcol', import.meta.url));

/** The limit for a `beforeAll` that may have to build the collector, on two cores shared with other tests. */
export const BUILD_LIMIT_MS = 20 * 60_000;

// Test files run in parallel; after waiting for the lock, they find the program built. Only a missing network (status
// 3) counts as unavailable. A failure to compile is an error.
const BUILD = `
test -x "$1" && exit 0
nice -n 10 go list -deps . >/dev/null || exit 3
nice -n 10 go build -trimpath -ldflags '-s -w' -o "$1.new" . && mv "$1.new" "$1"`;

const run = promisify(execFile);

/** `HOLDFAST_OTELCOL`, a command that takes `--config FILE`, else a cached build of the OpenTelemetry Collector. */
export async function collectorBinary(): Promise<ServerBinary> {
  if (process.env.HOLDFAST_OTELCOL !== undefined) return { path: process.env.HOLDFAST_OTELCOL };
  const path = join(CACHE, sourceDigest(), 'otelcol');
  if (existsSync(path)) return { path };
  if (!MAY_INSTALL) return { missing: notInstalled('OpenTelemetry Collector') };
  const tool = ['go', 'flock', 'nice'].find((tool) => inPath(tool) === undefined);
  if (tool !== undefined) return { missing: `there is no ${tool} on this machine to build a collector with` };
  mkdirSync(join(path, '..'), { recursive: true });
  try {
    await run('flock', [`${path}.lock`, 'sh', '-c', BUILD, 'sh', path], { cwd: SOURCE, maxBuffer: 1 << 26 });
  } catch (error) {
    const { code, stderr = '' } = error as { code?: number; stderr?: string };
    if (code !== 3) throw error;
    return { missing: `the source of the collector cannot be had: ${stderr.trim().split('\n').at(-1)}` };
  }
  return { path };
}

const sourceDigest = (): string =>
  ['go.mod', 'main.go']
    .reduce((hash, name) => hash.update(readFileSync(join(SOURCE, name))), createHash('sha256'))
    .digest('hex')
    .slice(0, 12);
