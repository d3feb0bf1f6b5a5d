import { rmSync } from 'node:fs';
import { relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chromiumCommand } from '../e2e/browser/chromium.ts';
import { needs } from '../needs.ts';
import { BrowserPage } from '../status/browser-page.ts';
import { BuiltSite, siteBuilder } from './built-site.ts';
import { pages, snippetsOf } from './pages.ts';

/** Allows for the site builder's installation on the first run. */
const BUILD_LIMIT_MS = 300_000;
const LIMIT_MS = 120_000;
const PHONE = { width: 400, height: 900 };
/** Each page has something the others lack: a hero, diagrams, wide tables, many headings, code in several languages. */
const SAMPLE = ['/', '/docs/how-recovery-works', '/docs/recovery', '/docs/api', '/docs/start'];

const builder = await siteBuilder();
const chromium = await chromiumCommand();

describe('the site', needs(builder), () => {
  let site: BuiltSite;
  // Vitepress fails to build if a link leads to a page that doesn't exist.
  beforeAll(async () => {
    if ('build' in builder) site = await BuiltSite.build(builder.build);
  }, BUILD_LIMIT_MS);
  afterAll(async () => {
    await site?.close();
    if (site) rmSync(site.directory, { recursive: true });
  });

  test('has a page for every page of the repository, at the same path', () => {
    const expected = pages().map(({ path }) => path.replace(/\.md$/, '.html'));
    expect(site.pages).toEqual(new Set([...expected, '404.html', 'index.html']));
  });

  test('has no link that leads nowhere, anchors and files included', () => {
    const anchors = new Map<string, Set<string>>();
    const anchorsIn = (file: string): Set<string> => {
      const known = anchors.get(file);
      if (known) return known;
      const found = new Set([...site.read(file).matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id));
      anchors.set(file, found);
      return found;
    };
    let followed = 0;
    const faults = [...site.pages].flatMap((page) => {
      const address = new URL(page === 'index.html' ? '/' : `/${page.replace(/\.html$/, '')}`, site.url);
      const hrefs = [...site.read(page).matchAll(/<a [^>]*href="([^"]+)"/g)].map(([, href = '']) => href);
      return hrefs.flatMap((href) => {
        const { origin, pathname, hash } = new URL(href.replaceAll('&amp;', '&'), address);
        if (origin !== site.url) return [];
        followed++;
        const file = site.fileAt(pathname);
        if (file === undefined) return [`${page}: ${href}`];
        const anchor = decodeURIComponent(hash.slice(1));
        return anchor === '' || anchorsIn(relative(site.directory, file)).has(anchor)
          ? []
          : [`${page}: ${href}`];
      });
    });
    expect(faults).toEqual([]);
    expect(followed).toBeGreaterThan(1000);
  });

  test('has each page as Markdown beside it, and all of them in llms.txt and llms-full.txt', () => {
    const index = site.read('llms.txt');
    const all = site.read('llms-full.txt');
    for (const { path, text } of pages()) {
      const [, title = ''] = /^# (.+)$/m.exec(text) ?? [];
      expect(site.read(path)).toContain(title);
      expect(index).toContain(`](/${path})`);
      expect(all).toContain(title);
    }
    expect(site.read('docs/how-recovery-works.md')).toContain('```mermaid');
  });

  describe('in a browser', needs(chromium), () => {
    const open = async (path: string, size?: { width: number; height: number }): Promise<BrowserPage> => {
      if (!('command' in chromium)) throw new Error(chromium.missing);
      const page = await BrowserPage.open(chromium.command, site.url + path, size);
      // Clicks do nothing until the application has mounted.
      await page.until("document.querySelector('#app')?.__vue_app__ !== undefined");
      return page;
    };

    test('answers a search, and the answer leads to the place', { timeout: LIMIT_MS }, async () => {
      const page = await open('/');
      await page.read("document.querySelector('.VPNavBarSearch button').click()");
      await page.until("document.activeElement?.id === 'localsearch-input'");
      await page.type('unanchored');
      const first = "document.querySelector('.VPLocalSearchBox .result')";
      await page.until(`${first} !== null`);
      const href = await page.read<string>(`${first}.getAttribute('href')`);
      await page.press('Enter');
      await page.until("location.pathname !== '/'");
      expect(await page.read('location.pathname + location.hash')).toBe(href);
      // The address changes before the page does.
      await page.until("document.querySelector('main')?.innerText.includes('unanchored')");
      expect(page.errors).toEqual([]);
    });

    test.for(SAMPLE)(
      '%s has nothing that axe objects to, light or dark',
      { timeout: LIMIT_MS },
      async (path) => {
        const page = await open(path);
        for (const scheme of ['light', 'dark'] as const) {
          await page.prefer(scheme);
          await page.until("document.documentElement.classList.contains('dark')", scheme === 'dark');
          const violations = await page.violations();
          expect(violations.map(({ id, nodes }) => `${scheme} ${id}: ${nodes[0]?.html}`)).toEqual([]);
        }
        expect(page.errors).toEqual([]);
      },
    );

    test.for(SAMPLE)('%s fits a phone', { timeout: LIMIT_MS }, async (path) => {
      const page = await open(path, PHONE);
      expect(await page.read('document.documentElement.scrollWidth')).toBeLessThanOrEqual(PHONE.width);
    });

    test('shows one drawing of each diagram, that of the scheme', { timeout: LIMIT_MS }, async () => {
      const source = pages().find(({ path }) => path === 'docs/how-recovery-works.md');
      const diagrams = source ? snippetsOf(source).filter(({ language }) => language === 'mermaid') : [];
      const page = await open('/docs/how-recovery-works');
      for (const scheme of ['light', 'dark'] as const) {
        await page.prefer(scheme);
        const shown = `[...document.querySelectorAll('.diagram img')].filter((image) => image.offsetParent !== null)`;
        await page.until(
          `${shown}.map(({ className }) => className)`,
          diagrams.map(() => `${scheme}-only`),
        );
        await page.until(`${shown}.every(({ complete, naturalWidth }) => complete && naturalWidth > 0)`);
      }
    });
  });
});
