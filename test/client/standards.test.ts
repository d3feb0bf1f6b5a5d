import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { compileClient } from './compiled-client.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

test('needs nothing but what browsers have', () => {
  const { directory, remove } = compileClient();
  onTestFinished(remove);
  const files = globSync('**/*.js', { cwd: directory });
  expect(files).toContain('client/index.js');
  for (const file of files) {
    const imports = readFileSync(join(directory, file), 'utf8').matchAll(/from '([^']+)'/g);
    for (const [, specifier] of imports) expect(specifier).toMatch(/^\.{1,2}\//);
  }
});

test('is what the package exports as holdfast/client', () => {
  const script = "import('holdfast/client').then(({ resumable }) => console.log(typeof resumable({})))";
  expect(execFileSync(process.execPath, ['-e', script], { cwd: ROOT, encoding: 'utf8' })).toBe('function\n');
});
