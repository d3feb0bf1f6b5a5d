import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { pythonEnvironment } from '../e2e/python/environment.ts';
import { needs } from '../needs.ts';

const PACKAGE = fileURLToPath(new URL('../../clients/python', import.meta.url));
/** Without a cache, mypy takes most of a minute to check the libraries that the examples use. */
const MYPY_CACHE = fileURLToPath(new URL('../../node_modules/.cache/holdfast-mypy', import.meta.url));
const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};
/** Allows for a busy machine. */
const PATIENCE_MS = 600_000;

const run = promisify(execFile);
const environment = await pythonEnvironment();
const scratch = mkdtempSync(join(tmpdir(), 'holdfast-client-python-'));
afterAll(() => rmSync(scratch, { recursive: true }));

/** Runs Python and returns its output; rejects with the output if it fails. Writes no bytecode next to the sources. */
async function python(...words: readonly string[]): Promise<string> {
  if ('missing' in environment) throw new Error(environment.missing);
  const env = { PATH: process.env.PATH, PYTHONDONTWRITEBYTECODE: '1' };
  try {
    return (await run(environment.interpreter, words, { cwd: PACKAGE, env })).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${stdout}\n${stderr}`);
  }
}

function mypy(...words: readonly string[]): Promise<string> {
  mkdirSync(MYPY_CACHE, { recursive: true });
  return python('-m', 'mypy', '--strict', '--cache-dir', MYPY_CACHE, ...words);
}

/** Writes each Python example of the README to a file in `beside`; returns the paths. */
function writeExamples(beside: string): string[] {
  const readme = readFileSync(join(PACKAGE, 'README.md'), 'utf8');
  return [...readme.matchAll(/```python\n(.*?)```/gs)].map(([, code = ''], index) => {
    const path = join(beside, `example_${index}.py`);
    writeFileSync(path, code);
    return path;
  });
}

describe('the client for Python', { timeout: PATIENCE_MS, ...needs(environment) }, () => {
  test('passes its own tests, none of them skipped', async () => {
    expect(await python('-m', 'pytest', '--quiet')).toMatch(/^\d+ passed in /m);
  });

  test('is typed', async () => {
    expect(await mypy('src')).toContain('Success');
  });

  test('is formatted, and has nothing to complain of', async () => {
    await python('-m', 'ruff', 'format', '--no-cache', '--check');
    await python('-m', 'ruff', 'check', '--no-cache');
  });

  test('can be installed, and its examples are right by the types of what was installed', async () => {
    const options = ['--quiet', '--no-index', '--no-deps', '--no-build-isolation', '--target', scratch];
    await python('-m', 'pip', 'install', '--disable-pip-version-check', ...options, PACKAGE);
    const installed = readdirSync(join(scratch, 'holdfast_client'));
    // The client and the server are released together, with the same version.
    expect(readdirSync(scratch)).toContain(`holdfast_client-${version}.dist-info`);
    expect(installed).toEqual(expect.arrayContaining(['__init__.py', 'httpx2.py', 'py.typed']));
    const examples = writeExamples(scratch);
    expect(examples.length).toBeGreaterThan(2);
    expect(await mypy(...examples)).toContain('Success');
  });
});
