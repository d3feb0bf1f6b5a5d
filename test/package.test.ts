import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import OpenAI from 'openai';
import { publint } from 'publint';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, type TestContext } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import { brokenLinks } from './package/broken-links.ts';
import { install, installNode } from './package/install.ts';
import { cloneRepository, type Packed, pack } from './package/packed.ts';
import { run } from './package/run.ts';
import { serveWhile } from './package/serve.ts';
import { TYPE_KINDS, typeCheck } from './package/type-check.ts';
import { startProvider } from './provider/provider.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** The limit for the tarball, slightly above its current size. */
const LIMIT_BYTES = 840_000;
const LIMIT_PACKAGES = 80;
const LIMIT_DOWNLOAD_MS = 30_000;
/** Each command takes seconds; all of them take longer on a busy machine. */
const LIMIT_MS = 240_000;

const OLDEST = manifest.engines.node.replace('>=', '').concat('.0');

const directory = mkdtempSync(join(tmpdir(), 'holdfast-package-'));
const project = join(directory, 'project');
const installed = join(project, 'node_modules/holdfast');
let clone: string;
let packed: Packed;
let oldest: string | Error;

beforeAll(async () => {
  clone = cloneRepository(directory);
  packed = await pack(clone, directory);
  await install(project, packed.tarball);
  oldest = await installNode(join(directory, 'oldest'), OLDEST, LIMIT_DOWNLOAD_MS);
}, LIMIT_MS);

afterAll(() => rmSync(directory, { recursive: true }));

describe('the tarball', () => {
  const ALLOWED = [
    /^(package\.json|README\.md|LICENSE|CHANGELOG\.md|holdfast\.(openapi|schema)\.json)$/,
    /^docs\/[\w-]+\.(md|svg)$/,
    /^dist\/.+\.js$/,
    // Users import only the client from the package, as ES modules or as CommonJS.
    /^dist\/(commonjs\/)?(client|interrupts)\/[\w-]+\.d\.ts$/,
    /^dist\/commonjs\/package\.json$/,
    // Served to browsers unchanged.
    /^dist\/status\/page\/[\w-]+\.(css|html|js|svg)$/,
  ];

  it('has nothing but what runs, the types of the client, and documents', () => {
    expect(packed.files.filter((path) => !ALLOWED.some((rule) => rule.test(path)))).toEqual([]);
    expect(packed.files).toEqual(
      expect.arrayContaining([
        'LICENSE',
        'README.md',
        'CHANGELOG.md',
        'holdfast.openapi.json',
        'holdfast.schema.json',
      ]),
    );
  });

  it('has every module, and none that has no source', () => {
    const modules = packed.files.filter((path) => /^dist\/(?!commonjs\/).*\.js$/.test(path));
    const sources = globSync(['**/*.ts', 'status/page/*.js'], { cwd: join(ROOT, 'src') });
    expect(modules.sort()).toEqual(sources.map((path) => `dist/${path.replace(/ts$/, 'js')}`).sort());
  });

  it(`is smaller than ${LIMIT_BYTES} bytes`, () => {
    expect(packed.size).toBeLessThan(LIMIT_BYTES);
  });

  it('has documents whose links lead to its files or out into the web', () => {
    expect(brokenLinks(installed, packed.files)).toEqual([]);
    const readme = readFileSync(join(installed, 'README.md'), 'utf8');
    expect(readme).toContain(
      `(https://repository.invalid/holdfast/blob/v${manifest.version}/ARCHITECTURE.md)`,
    );
  });

  it('leaves the documents of the clone as they were', () => {
    const pages = packed.files.filter((path) => path.endsWith('.md'));
    const read = (root: string) => pages.map((path) => readFileSync(join(root, path), 'utf8'));
    expect(read(clone)).toEqual(read(ROOT));
    expect(existsSync(join(clone, '.originals'))).toBe(false);
  });

  it('has nothing that publint objects to', async () => {
    const { messages } = await publint({ pkgDir: installed, pack: false, strict: true });
    expect(messages).toEqual([]);
  });

  it(`brings at most ${LIMIT_PACKAGES} packages, itself included, and none that runs a script at its installation`, () => {
    const lock = readFileSync(join(project, 'node_modules/.package-lock.json'), 'utf8');
    const packages: Record<string, { hasInstallScript?: boolean }> = JSON.parse(lock).packages;
    expect(Object.keys(packages).length).toBeLessThanOrEqual(LIMIT_PACKAGES);
    expect(Object.keys(packages).filter((path) => packages[path]?.hasInstallScript)).toEqual([]);
  });
});

/** Entry points of processes and of a thread, not for import. */
const RUN_BY_SERVE = new Set([
  'dist/cli.js',
  'dist/checkpoint/file/file-writer-thread.js',
  'dist/commands/worker.js',
]);

describe.each([
  ['this Node', process.version, () => process.execPath],
  [`Node ${OLDEST}, the oldest that is supported`, `v${OLDEST}`, () => oldest],
])('installed into an empty project, on %s', (_name, version, choose) => {
  const nodeOrSkip = ({ skip }: TestContext) => {
    const node = choose();
    return node instanceof Error ? skip(`it could not be downloaded: ${node.message}`) : node;
  };
  const runIn = (node: string, command: string, words: string[]) =>
    run(command, words, {
      cwd: project,
      // npm and its commands run on the first Node on the PATH.
      env: { ...process.env, PATH: [dirname(node), process.env.PATH].join(delimiter) },
    });

  it('npx finds the command', { timeout: LIMIT_MS }, async (context) => {
    const node = nodeOrSkip(context);
    expect(await runIn(node, 'npx', ['--no', '--', 'holdfast', '--version'])).toBe(`${manifest.version}\n`);
    expect(await runIn(node, 'npx', ['--no', '--', 'holdfast', '--help'])).toContain(
      'holdfast serve [options]',
    );
  });

  it('checks a configuration', { timeout: LIMIT_MS }, async (context) => {
    const node = nodeOrSkip(context);
    const file = join(project, 'holdfast.yaml');
    writeFileSync(file, 'upstreams: { main: { base_url: "http://127.0.0.1:9/v1" } }\n');
    expect(await runIn(node, 'npx', ['--no', '--', 'holdfast', 'check', file])).toContain(
      'http://127.0.0.1:9/v1',
    );
  });

  it('serves a stock SDK the whole of an answer that is cut, and people the status page', {
    timeout: LIMIT_MS,
  }, async (context) => {
    const node = nodeOrSkip(context);
    const whole =
      'The tide comes in twice a day, and what holds fast to the rock is there when it is out again.';
    const cut = { parts: [{ text: whole }], faults: [{ kind: 'reset', at: { event: 6 } }] } as const;
    const provider = await startProvider({ scripts: { '*': cut } });
    onTestFinished(() => provider.close());
    const cli = join(installed, 'dist/cli.js');
    const status = await serveWhile(node, cli, project, provider.url, async ({ api, admin }) => {
      expect((await fetch(`${admin}/livez`)).status).toBe(200);
      const page = await fetch(admin, { headers: { accept: 'text/html' } });
      expect(await page.text()).toMatch(/^<!doctype html>/);
      const client = new OpenAI({ baseURL: `${api}/v1`, apiKey: 'sk-client', maxRetries: 0 });
      const answer = client.chat.completions.stream({
        model: 'm',
        messages: [{ role: 'user', content: 'Tides?' }],
      });
      expect(await answer.finalContent()).toBe(whole);
      expect(provider.requests.length).toBeGreaterThan(1);
    });
    expect(status).toBe(0);
  });

  it('shows an answer that is cut three times and comes whole', { timeout: LIMIT_MS }, async (context) => {
    const shown = await runIn(nodeOrSkip(context), 'npx', ['--no', '--', 'holdfast', 'demo']);
    expect(shown.match(/R1: asks for the rest of the text/g)).toHaveLength(3);
    expect(shown).toContain('✔ byte for byte what the provider says uncut');
  });

  it('loads every module, with nothing installed but its dependencies', {
    timeout: LIMIT_MS,
  }, async (context) => {
    const modules = packed.files
      .filter((path) => /^dist\/(?!status\/page\/).*\.js$/.test(path) && !RUN_BY_SERVE.has(path))
      .map((path) => join(installed, path));
    const script = `for (const module of ${JSON.stringify(modules)}) await import(module);`;
    await runIn(nodeOrSkip(context), 'node', ['--input-type=module', '-e', script]);
  });

  const USE = `
    const response = await resumable()('data:text/plain,whole');
    console.log(await response.text(), new StreamInterruptedError().name, process.version);`;
  const USED = `whole StreamInterruptedError ${version}\n`;

  it('is imported', { timeout: LIMIT_MS }, async (context) => {
    const script = `import { resumable, StreamInterruptedError } from 'holdfast/client'; ${USE}`;
    const said = await runIn(nodeOrSkip(context), 'node', ['--input-type=module', '-e', script]);
    expect(said).toBe(USED);
  });

  it('is required, also where require() cannot load ES modules', { timeout: LIMIT_MS }, async (context) => {
    const script = `
      const { resumable, StreamInterruptedError } = require('holdfast/client');
      (async () => {${USE}})();`;
    const words = ['--no-experimental-require-module', '--input-type=commonjs', '-e', script];
    expect(await runIn(nodeOrSkip(context), 'node', words)).toBe(USED);
  });
});

describe('the types of the client are found', () => {
  it.each(TYPE_KINDS)(
    'module %s, resolution %s, types of %s',
    {
      timeout: LIMIT_MS,
    },
    async (module, resolution, environment) => {
      await typeCheck(project, 'holdfast/client', module, resolution, environment);
    },
  );
});
