import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isObject } from '../../src/lib/json.ts';
import type { Missing } from '../debian-program.ts';
import { BUILD_LIMIT_MS, helmBinary } from '../kubernetes/binaries.ts';
import { haproxy, nginx } from './balancers.ts';
import { http, json, mermaid, yaml } from './documents.ts';
import { pages, type Snippet, snippetsOf } from './pages.ts';
import { javaScript, python } from './programs.ts';
import { shell } from './shell.ts';
import { StandIn } from './stand-in.ts';

/** The first programs load their libraries from a busy disk. */
const PATIENCE_MS = 120_000;

let standIn: StandIn;
beforeAll(async () => {
  standIn = await StandIn.start();
}, PATIENCE_MS);
// If Helm isn't installed, building it takes longer than the limit for a code block.
beforeAll(helmBinary, BUILD_LIMIT_MS);
afterAll(() => standIn.close());

const scratch = (): string => mkdtempSync(join(standIn.directory, 'scratch-'));

/** Throws or rejects if the block is wrong; returns what this machine lacks if it can't be checked. */
type Check = (snippet: Snippet) => unknown;

/** The check for each language. A block in any other language, or in none, fails. */
const LANGUAGES: Readonly<Record<string, Check>> = {
  sh: (snippet) => shell(snippet, standIn),
  bash: (snippet) => shell(snippet, standIn),
  console: (snippet) => shell(snippet, standIn),
  js: (snippet) => javaScript(snippet, standIn),
  ts: (snippet) => (isSource(snippet) ? undefined : javaScript(snippet, standIn)),
  python: (snippet) => python(snippet, standIn),
  json,
  mermaid,
  yaml: (snippet) => yaml(snippet, scratch()),
  http,
  redis: (snippet) => redis(snippet),
  haproxy: (snippet) => haproxy(snippet, scratch()),
  nginx: (snippet) => nginx(snippet, scratch()),
  /** Text for people: output, diagrams, sentences. */
  text: () => {},
};

/** Source files that don't exist in the repository; test/docs/provider-page.test.ts creates and checks them. */
const isSource = ({ page }: Snippet): boolean => page === 'docs/adding-a-provider.md';

const isMissing = (lacks: unknown): lacks is Missing => isObject(lacks) && 'missing' in lacks;

async function redis({ code }: Snippet): Promise<Missing | undefined> {
  if (standIn.redisPort === undefined) return { missing: 'there is no redis-server on this machine' };
  const client = new Redis(standIn.redisPort);
  try {
    for (const line of code.trimEnd().split('\n')) {
      const [command = '', ...words] = line.split(' ');
      await client.call(command, ...words);
    }
  } finally {
    client.disconnect();
  }
  return undefined;
}

describe.each(pages().map((page) => [page.path, snippetsOf(page)] as const))('%s', (path, snippets) => {
  test.for(snippets)('line $line: $language', { timeout: PATIENCE_MS }, async (snippet, { skip }) => {
    const { language } = snippet;
    const check = LANGUAGES[language];
    if (!check)
      throw new Error(`${path}: nobody knows how to check ${language || 'a block without a language'}`);
    const lacks = await check(snippet);
    if (isMissing(lacks)) skip(lacks.missing);
  });
  if (snippets.length === 0) test('has no code', () => expect(snippets).toEqual([]));
});

describe('a block that is wrong is found', () => {
  const wrong: [language: string, code: string, message: RegExp][] = [
    ['sh', 'holdfast check nowhere.yaml\n', /nowhere\.yaml/],
    ['sh', 'rm -rf /nowhere\n', /command not found/],
    ['sh', 'curl http://127.0.0.1:8080/nowhere\n', /404/],
    ['js', "import 'no-such-package';\n", /no-such-package/],
    ['json', '{ "a": … }\n', /JSON/],
    ['mermaid', 'flowchart TD\n  accDescr: A leads to B.\n  a --> b\n', /site:diagrams/],
    ['yaml', 'upstreams: { a: { base_url: nowhere } }\n', /base_url/],
    ['yaml', 'recovery: { max_attemps: 2 }\n', /max_attempts/],
    ['yaml', 'nobody: knows\n', /nobody knows/],
    ['http', 'GET nowhere\n', /GET nowhere/],
    ['haproxy', 'frontend a\n  bind nowhere\n', /nowhere/],
  ];
  test.for(wrong)('%s: %s', { timeout: PATIENCE_MS }, async ([language, code, message], { skip }) => {
    const check = async () => LANGUAGES[language]?.({ page: 'README.md', line: 1, language, code });
    const found = await check().catch((error: Error) => error);
    if (isMissing(found)) skip(found.missing);
    expect(found).toBeInstanceOf(Error);
    expect(String((found as Error).message)).toMatch(message);
  });

  test('one within a list too, and one that does not end', () => {
    const text = '1. so:\n\n   ```json\n   {}\n   ```\n\n```\nx\n```\n';
    const page = { path: 'a.md', text };
    expect(snippetsOf(page).map(({ line, language, code }) => [line, language, code])).toEqual([
      [4, 'json', '{}\n'],
      [8, '', 'x\n'],
    ]);
    expect(() => snippetsOf({ path: 'a.md', text: '```sh\nls\n' })).toThrow('a.md:1: this block has no end');
  });
});
