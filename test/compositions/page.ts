import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { ROOT, snippet } from '../docs/pages.ts';

const PAGE = 'docs/with-other-gateways.md';
const OPENAI = 'https://api.openai.com/v1';
const VLLM = 'http://vllm:8000/v1';
const MARK = '<!-- asserted by test/compositions/compositions.test.ts -->';

/** A provider takes any. */
export const KEY = 'key-of-the-provider';

/** Base URLs of the page, and those that stand in for them here. */
export type Addresses = Readonly<Record<string, string>>;

/** One provider in place of all of the page. */
export const providerAt = (url: string): Addresses => ({ [OPENAI]: url, [VLLM]: url });

const located = (text: string, addresses: Addresses): string =>
  Object.entries({ ...addresses, '${OPENAI_API_KEY}': KEY }).reduce(
    (all, [page, here]) => all.replaceAll(page, here),
    text,
  );

/** The block of the page in this language that has these words. */
export const block = (language: string, words: string, addresses: Addresses): string =>
  located(snippet(PAGE, language, words), addresses);

/** The configuration of Holdfast that has these words. */
export function holdfastTree(words: string, addresses: Addresses): Record<string, unknown> {
  // Only the address says whose dialect it is, and the address changes.
  const page = snippet(PAGE, 'yaml', words).replace(
    `{ base_url: ${OPENAI} }`,
    `{ base_url: ${OPENAI}, dialect: openai }`,
  );
  return { ...parse(located(page, addresses)), recovery: { backoff_ms: 1, backoff_max_ms: 10 } };
}

/** The cells of the page's table, by what is asked and what happens. */
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
