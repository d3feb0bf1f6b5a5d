import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { ROOT, snippet } from '../docs/pages.ts';

const PAGE = 'docs/with-other-gateways.md';
const OPENAI = 'https://api.openai.com/v1';
const VLLM = 'http://vllm:8000/v1';
const MARK = '<!-- asserted by test/compositions/compositions.test.ts -->';

/** The provider of the tests accepts any key. */
export const KEY = 'key-of-the-provider';

/** Maps base URLs on the page to the test's own. */
export type Addresses = Readonly<Record<string, string>>;

/** One provider replaces all those on the page. */
export const providerAt = (url: string): Addresses => ({ [OPENAI]: url, [VLLM]: url });

const located = (text: string, addresses: Addresses): string =>
  Object.entries({ ...addresses, '${OPENAI_API_KEY}': KEY }).reduce(
    (all, [page, here]) => all.replaceAll(page, here),
    text,
  );

/** The page's code block in this language that contains `words`. */
export const block = (language: string, words: string, addresses: Addresses): string =>
  located(snippet(PAGE, language, words), addresses);

/** The page's Holdfast configuration that contains `words`. */
export function holdfastTree(words: string, addresses: Addresses): Record<string, unknown> {
  // Without its original address, the provider's dialect must be configured.
  const page = snippet(PAGE, 'yaml', words).replace(
    `{ base_url: ${OPENAI} }`,
    `{ base_url: ${OPENAI}, dialect: openai }`,
  );
  return { ...parse(located(page, addresses)), recovery: { backoff_ms: 1, backoff_max_ms: 10 } };
}

/** The cells of the page's table, by row and then by kind of trouble. */
export function documented(): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const [, table = ''] = readFileSync(join(ROOT, PAGE), 'utf8').split(MARK);
  const [[, ...troubles] = [], , ...rows] = (table.trim().split('\n\n')[0] ?? '').split('\n').map(cellsOf);
  return new Map(
    rows.map(([name = '', ...cells]) => [name, new Map(troubles.map((each, at) => [each, cells[at] ?? '']))]),
  );
}

const cellsOf = (line: string): string[] =>
  line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
