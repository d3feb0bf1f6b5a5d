import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { publint } from 'publint';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import clientManifest from '../clients/javascript/package.json' with { type: 'json' };
import manifest from '../package.json' with { type: 'json' };
import { framesOf, saying, words } from './client/answers.ts';
import { cut, Fleet } from './client/fleet.ts';
import { needs } from './needs.ts';
import { brokenLinks } from './package/broken-links.ts';
import { install, installNode } from './package/install.ts';
import { cloneRepository, type Packed, pack } from './package/packed.ts';
import { run } from './package/run.ts';
import { bun, deno } from './package/runtimes.ts';
import { TYPE_KINDS, typeCheck } from './package/type-check.ts';

const LIMIT_BYTES = 100_000;
const LIMIT_DOWNLOAD_MS = 30_000;
/** Packing and installing take seconds, and longer on a busy machine. */
const LIMIT_MS = 240_000;
const EVENTS = saying(...words(12));

const directory = mkdtempSync(join(tmpdir(), 'holdfast-client-package-'));
const project = join(directory, 'project');
const installed = join(project, 'node_modules', clientManifest.name);
const OLDEST = clientManifest.engines.node.replace('>=', '').concat('.0');
const oldest = await installNode(join(directory, 'oldest'), OLDEST, LIMIT_DOWNLOAD_MS);
const [denoProgram, bunProgram] = await Promise.all([deno(), bun()]);
let packed: Packed;

beforeAll(async () => {
  packed = await pack(join(cloneRepository(directory), 'clients/javascript'), directory);
  await install(project, packed.tarball);
}, LIMIT_MS);

afterAll(() => rmSync(directory, { recursive: true }));

describe('the tarball of the client', () => {
  it('has the client, its types and its document, and nothing else', () => {
    const ALLOWED = [
      /^(package\.json|README\.md|LICENSE|dist\/commonjs\/package\.json)$/,
      /^dist\/(commonjs\/)?client\/[\w-]+(\.d\.ts|\.js)$/,
      /^dist\/(commonjs\/)?interrupts\/retry-after(\.d\.ts|\.js)$/,
    ];
    expect(packed.files.filter((path) => !ALLOWED.some((rule) => rule.test(path)))).toEqual([]);
    expect(packed.files).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'dist/client/index.js']));
  });

  it(`is smaller than ${LIMIT_BYTES} bytes`, () => {
    expect(packed.size).toBeLessThan(LIMIT_BYTES);
  });

  it('brings no other package', () => {
    const lock = readFileSync(join(project, 'node_modules/.package-lock.json'), 'utf8');
    expect(Object.keys(JSON.parse(lock).packages)).toEqual([`node_modules/${clientManifest.name}`]);
  });

  it('has nothing that publint objects to', async () => {
    const { messages } = await publint({ pkgDir: installed, pack: false, strict: true });
    expect(messages).toEqual([]);
  });

  it('has documents whose links lead to its files or out into the web', () => {
    expect(brokenLinks(installed, packed.files)).toEqual([]);
  });

  it('is released together with the server', () => {
    const { version, license, engines } = manifest;
    expect(clientManifest).toMatchObject({ version, license, engines });
  });
});

/** Asks the first of its replicas and prints the answer. */
const USE = `
  const [url, second] = process.argv.slice(-2);
  const fetch = resumable({ endpoints: [url, second], backoffMs: 1, backoffMaxMs: 4 });
  fetch(url + '/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer client-key' },
    body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'Tides?' }] }),
  })
    .then((response) => response.text())
    .then((text) => process.stdout.write(text));`;
const IMPORTED = `import { resumable } from '${clientManifest.name}';\nimport process from 'node:process';\n${USE}`;
const REQUIRED = `const { resumable } = require('${clientManifest.name}');\n${USE}`;

/** A runtime, its arguments before the path of a program, and its own path. */
type Runtime = readonly [
  name: string,
  words: readonly string[],
  { readonly path: string } | { readonly missing: string },
];

const RUNTIMES: readonly Runtime[] = [
  ['this Node', [], { path: process.execPath }],
  [
    `Node ${OLDEST}`,
    [],
    oldest instanceof Error ? { missing: `it could not be downloaded: ${oldest.message}` } : { path: oldest },
  ],
  ['Deno 2', ['run', '--allow-net', '--no-config', '--node-modules-dir=manual'], denoProgram],
  ['Bun 1', [], bunProgram],
];

describe.each(RUNTIMES)('installed into an empty project, on %s', (_name, words, runtime) => {
  async function answerOf(file: string, program: string): Promise<string> {
    if ('missing' in runtime) throw new Error(runtime.missing);
    const fleet = await Fleet.start(EVENTS);
    fleet.script(cut(700, 'reset'), cut(300, 'fin'));
    writeFileSync(join(project, file), program);
    return run(runtime.path, [...words, file, ...fleet.urls], { cwd: project });
  }

  it('reads on over cut connections where it is imported', {
    timeout: LIMIT_MS,
    ...needs(runtime),
  }, async () => {
    expect(await answerOf('imports.mjs', IMPORTED)).toBe(framesOf(EVENTS));
  });

  it('reads on over cut connections where it is required', {
    timeout: LIMIT_MS,
    ...needs(runtime),
  }, async () => {
    expect(await answerOf('requires.cjs', REQUIRED)).toBe(framesOf(EVENTS));
  });
});

describe('the types of the client without the server are found', () => {
  it.each(TYPE_KINDS)(
    'module %s, resolution %s, types of %s',
    {
      timeout: LIMIT_MS,
    },
    async (module, resolution, environment) => {
      await typeCheck(project, clientManifest.name, module, resolution, environment);
    },
  );
});
