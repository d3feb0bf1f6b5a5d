import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ERRORS } from '../../src/lib/errors.ts';
import { anchorsOf, linksOf } from './links.ts';
import { type Page, pages, ROOT } from './pages.ts';

const all = pages();
const byPath = new Map(all.map((page) => [page.path, page]));
const pageAt = (path: string): Page => {
  const page = byPath.get(path);
  if (!page) throw new Error(`there is no ${path}`);
  return page;
};

/** What is wrong with a link; `undefined` if nothing is. */
function fault(page: Page, target: string): string | undefined {
  if (/^[a-z]+:/.test(target)) return externalFault(target);
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? page.path : relative(ROOT, join(ROOT, dirname(page.path), path));
  if (file.startsWith('..')) return 'leads out of the repository';
  if (!existsSync(join(ROOT, file))) return `there is no ${file}`;
  if (anchor === undefined) return undefined;
  const linked = byPath.get(file);
  if (linked === undefined || statSync(join(ROOT, file)).isDirectory()) return `${file} has no anchors`;
  return anchorsOf(linked).has(anchor) ? undefined : `${file} has no #${anchor}`;
}

function externalFault(target: string): string | undefined {
  if (!URL.canParse(target)) return 'is not a URL';
  const { protocol, hostname, username } = new URL(target);
  if (protocol !== 'https:') return `is ${protocol}, not https:`;
  return hostname.includes('.') && username === '' ? undefined : 'names no host that others could reach';
}

describe('links', () => {
  test.each(all.map(({ path }) => path))('of %s lead somewhere', (path) => {
    const page = pageAt(path);
    const faults = linksOf(page).flatMap(({ target, line }) => {
      const wrong = fault(page, target);
      return wrong === undefined ? [] : [`${path}:${line}: ${target}: ${wrong}`];
    });
    expect(faults).toEqual([]);
  });

  test.each(['clients/javascript/README.md', 'clients/python/README.md'])(
    'of %s lead out into the web, because its package has no other page',
    (path) => {
      const targets = linksOf(pageAt(path)).map(({ target }) => target);
      expect(targets.filter((target) => !target.startsWith('https:') && !target.startsWith('#'))).toEqual([]);
    },
  );

  test('that lead nowhere are found', () => {
    const text =
      '# One `word`\n\n[a](#one-word) [b](#two) [c](nowhere.md)\n![d](docs/demo.svg) <https://a.example/>\n[e](http://x.y/)';
    const page = { path: 'README.md', text };
    expect([...anchorsOf(page)]).toEqual(['one-word']);
    expect(linksOf(page).map(({ target, line }) => [target, line])).toEqual([
      ['#one-word', 3],
      ['#two', 3],
      ['nowhere.md', 3],
      ['docs/demo.svg', 4],
      ['http://x.y/', 5],
      ['https://a.example/', 4],
    ]);
    expect(fault(page, 'nowhere.md')).toBe('there is no nowhere.md');
    expect(fault(page, 'docs/recovery.md#nothing')).toBe('docs/recovery.md has no #nothing');
    expect(fault(page, 'http://x.y/')).toBe('is http:, not https:');
  });

  test('lead from the README to every page', () => {
    const reached = new Set<string>();
    const visit = (path: string): void => {
      if (reached.has(path)) return;
      reached.add(path);
      const page = byPath.get(path);
      for (const { target } of page ? linksOf(page) : []) {
        const [file = ''] = target.split('#');
        if (!/^[a-z]+:/.test(target) && file !== '') visit(relative(ROOT, join(ROOT, dirname(path), file)));
      }
    };
    visit('README.md');
    // A link to a directory leads to its README.
    for (const path of [...reached]) visit(`${path.replace(/\/$/, '')}/README.md`);
    expect(all.map(({ path }) => path).filter((path) => !reached.has(path))).toEqual([]);
  });

  test('lead from the index of the documentation to every page of it', () => {
    const targets = linksOf(pageAt('docs/README.md')).map(({ target }) => target.split('#')[0]);
    const own = all.filter(({ path }) => path.startsWith('docs/') && path !== 'docs/README.md');
    expect(
      own.map(({ path }) => path.slice('docs/'.length)).filter((path) => !targets.includes(path)),
    ).toEqual([]);
  });
});

describe('troubleshooting', () => {
  const anchors = () => anchorsOf(pageAt('docs/troubleshooting.md'));

  test('has every error code', () => {
    expect(Object.keys(ERRORS).filter((code) => !anchors().has(code))).toEqual([]);
  });

  test('has every alert, and is where their runbooks are', () => {
    const rules = globSync('helm/holdfast/files/*.yaml', { cwd: ROOT }).map((path) =>
      readFileSync(join(ROOT, path), 'utf8'),
    );
    const alerts = rules.flatMap((text) =>
      [...text.matchAll(/^\s*-?\s*alert: (\w+)/gm)].map(([, name = '']) => name),
    );
    const runbooks = rules.flatMap((text) =>
      [...text.matchAll(/runbook_url: (\S+)/g)].map(([, url = '']) => url),
    );
    expect(alerts.filter((name) => !anchors().has(name.toLowerCase()))).toEqual([]);
    expect(runbooks.filter((url) => !anchors().has(url.replace(/"/g, '').split('#')[1] ?? ''))).toEqual([]);
  });
});
