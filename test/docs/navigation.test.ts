import { expect, test } from 'vitest';
import { anchorOf, destination, pageLink } from '../../site/links.ts';
import { GROUPS } from '../../site/navigation.ts';
import { anchorsOf } from './links.ts';
import { pages, ROOT } from './pages.ts';

const entries = GROUPS.flatMap((group) => group.pages.map(({ page }) => page));
const wholePages = entries.filter((page) => !page.includes('#'));

test('the navigation of the site has every page once; decisions have a group of their own', () => {
  const expected = pages().flatMap(({ path }) => (path.startsWith('docs/adr/') ? [] : [path]));
  expect(new Set(wholePages)).toEqual(new Set(expected));
  expect(wholePages).toHaveLength(expected.length);
});

test('what it leads to within a page is there', () => {
  const within = entries.filter((page) => page.includes('#'));
  for (const entry of within) {
    const [path, anchor = ''] = entry.split('#');
    const page = pages().find((each) => each.path === path);
    expect(page && anchorsOf(page)).toContain(anchor);
  }
  expect(within).not.toEqual([]);
});

test.each([
  ['docs/recovery.md', '/docs/recovery'],
  ['docs/troubleshooting.md#alerts', '/docs/troubleshooting#alerts'],
])('the page for %s is at %s', (path, link) => {
  expect(pageLink(path)).toBe(link);
});

test.each([
  ['targets.md#loops', { kind: 'page', href: 'targets.md#loops' }],
  ['../clients/python', { kind: 'page', href: '../clients/python/README.md' }],
  ['../clients/python/#options', { kind: 'page', href: '../clients/python/README.md#options' }],
  ['../holdfast.openapi.json', { kind: 'file', file: 'holdfast.openapi.json' }],
  ['../test/chaos', { kind: 'nothing' }],
  ['#words', { kind: 'elsewhere' }],
  ['https://llm.example.com/', { kind: 'elsewhere' }],
])('the link %s of a page in docs/ leads to %o', (href, expected) => {
  expect(destination(ROOT, 'docs/recovery.md', href)).toEqual(expected);
});

test('a link to a file that does not exist is an error which names the page', () => {
  expect(() => destination(ROOT, 'docs/recovery.md', 'nowhere.png')).toThrow(
    'docs/recovery.md: there is no docs/nowhere.png',
  );
});

test('headings have the anchors that GitHub gives them', () => {
  const text = '# `holdfast/client`, *twice*\n\n## HTTP/2 & GOAWAY_frames';
  expect(['`holdfast/client`, *twice*', 'HTTP/2 & GOAWAY_frames'].map(anchorOf)).toEqual([
    ...anchorsOf({ path: 'a.md', text }),
  ]);
});
