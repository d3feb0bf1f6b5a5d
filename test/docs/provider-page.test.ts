import { execFile } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../cli-process.ts';
import { ROOT, snippet } from './pages.ts';

const run = promisify(execFile);
const PAGE = 'docs/adding-a-provider.md';
const PATIENCE_MS = 300_000;

/** Copies the repository and does what the page asks of its reader: adds two files and an entry in the registry. */
function withKelpie(directory: string): void {
  const names = readdirSync(ROOT).filter((name) => !['.git', 'node_modules', 'dist'].includes(name));
  for (const name of names) cpSync(join(ROOT, name), join(directory, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  writeFileSync(join(directory, 'src/proxy/wires/dialects/kelpie.ts'), snippet(PAGE, 'ts', 'Dialect'));
  writeFileSync(
    join(directory, 'test/proxy/wires/dialects/fixtures/kelpie.ts'),
    snippet(PAGE, 'ts', 'Fixture'),
  );
  const registry = join(directory, 'src/proxy/wires/dialects/registry.ts');
  const text = readFileSync(registry, 'utf8');
  writeFileSync(
    registry,
    `import { kelpie } from './kelpie.ts';\n${text.replace('DIALECTS: Readonly<Record<DialectName, Dialect>> = {\n', '$&  kelpie,\n')}`,
  );
}

test(
  'a provider that is added as the page says is known, documented, and passes the tests of all dialects',
  async () => {
    const directory = temporaryDirectory();
    withKelpie(directory);
    const env = { PATH: `${join(ROOT, 'node_modules/.bin')}:${process.env.PATH}`, HOME: directory };
    const options = { cwd: directory, env, timeout: PATIENCE_MS };
    await run(process.execPath, ['scripts/generate-reference.mjs'], options);
    expect(readFileSync(join(directory, 'docs/providers.md'), 'utf8')).toContain('| `kelpie` | Kelpie |');
    await run('tsc', ['--noEmit'], options);
    const report = join(directory, 'report.json');
    const reporting = ['--reporter=json', `--outputFile=${report}`];
    await run('vitest', ['run', 'test/proxy/wires/dialects', '-t', 'kelpie', ...reporting], options);
    const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(report, 'utf8'));
    expect(numPassedTests).toBeGreaterThan(5);
    expect(numFailedTests).toBe(0);
  },
  PATIENCE_MS,
);
