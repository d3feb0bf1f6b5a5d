import { describe, expect, test } from 'vitest';
import { chromiumCommand } from '../e2e/browser/chromium.ts';
import { needs } from '../needs.ts';
import { BrowserPage } from './browser-page.ts';
import { Crowd, MODELS } from './crowd.ts';
import { openFeed } from './feed-reader.ts';

const LIVE = 1000;
/** Given a directory, the tests leave there what the documentation shows. */
const SCREENSHOTS = process.env.HOLDFAST_SCREENSHOTS;
const LIMIT_MS = 240_000;

const chromium = await chromiumCommand();

/** 1,000 live runs, and some that have ended, of everything that can become of one. */
async function startCrowd(): Promise<Crowd> {
  const crowd = await Crowd.start();
  const ended = [
    ['complete', 9],
    ['elsewhere', 4],
    ['recovered', 3],
    ['complete', 6],
    ['failed', 1],
    ['salvaged', 2],
    ['recovered', 5],
    ['elsewhere', 4],
    ['complete', 5],
    ['failed', 1],
    ['recovered', 2],
    ['complete', 4],
  ] as const;
  for (const [kind, count] of ended) {
    await Promise.all((await crowd.begin(MODELS[kind], count)).map((run) => run.ended));
  }
  const calm = (count: number) => MODELS.long.map((model) => crowd.begin(model, count));
  const first = [...calm(1), crowd.begin(MODELS.waits, 2), ...calm(1), crowd.begin(MODELS.cut, 3)];
  const second = [...calm(1), crowd.begin(MODELS.cut, 2), crowd.begin(MODELS.waits, 1), ...calm(1)];
  const others = [...calm((LIVE - 56) / 4), crowd.begin(MODELS.cut, 28), crowd.begin(MODELS.waits, 4)];
  await Promise.all([...first, ...second, ...others]);
  return crowd;
}

if ('missing' in chromium) {
  describe('the status page in Chromium', needs(chromium), () => test('is shown', () => {}));
} else {
  const { command } = chromium;
  const rows = 'document.querySelectorAll("#runs tbody tr").length';
  const focused = 'document.activeElement.closest("tr")?.dataset.run ?? document.activeElement.id';

  test(
    '1,000 live runs: a small page without errors, and nothing that accessibility audits find, in both themes',
    async () => {
      const crowd = await startCrowd();
      const page = await BrowserPage.open(command, crowd.holdfast.adminUrl);
      await page.until('document.querySelector("#live").textContent', '1,000');
      expect(await page.read(rows)).toBe(25);
      expect(await page.text('#page-number')).toBe('1–25 of 1,000');

      const choose = (model: string) =>
        page.read(
          `[...document.querySelectorAll("#runs tbody tr")].find((row) => row.cells[1].textContent === ${JSON.stringify(model)}).querySelector("button").click()`,
        );
      await choose(MODELS.waits);
      await page.until(
        '/^attempt 1 ▸ provider 5xx ▸ R1 ▸ attempt 2 ▸ .* ▸ R1$/.test(document.querySelector("#chain").textContent)',
      );
      expect(await page.read('document.querySelectorAll("*").length')).toBeLessThan(900);
      await page.prefer('light');
      if (SCREENSHOTS) await page.screenshot(`${SCREENSHOTS}/status-light.png`);
      for (const scheme of ['light', 'dark'] as const) {
        await page.prefer(scheme);
        expect(await page.violations(), scheme).toEqual([]);
      }

      await page.read('document.querySelector("input[value=ended]").click()');
      await page.until('document.querySelector("#runs-caption").textContent', 'Ended runs, last ended first');
      await choose(MODELS.recovered);
      await page.until('document.querySelector("#chain").textContent.endsWith("recovered")');
      await page.prefer('dark');
      if (SCREENSHOTS) await page.screenshot(`${SCREENSHOTS}/status-dark.png`);
      for (const scheme of ['light', 'dark'] as const) {
        await page.prefer(scheme);
        expect(await page.violations(), scheme).toEqual([]);
      }
      expect(page.errors).toEqual([]);
    },
    LIMIT_MS,
  );

  test(
    'the keyboard gets everywhere, and stays where it is while the page changes',
    async () => {
      const crowd = await Crowd.start();
      const [first] = await crowd.begin(MODELS.talks[0], 1);
      const [second] = await crowd.begin(MODELS.talks[1], 1);
      const [third] = await crowd.begin(MODELS.talks[2], 1);
      if (!first || !second || !third) throw new Error('they have not begun');
      const page = await BrowserPage.open(command, crowd.holdfast.adminUrl);
      await page.until(rows, 3);

      for (const selector of [
        '.skip',
        '#pause',
        '#theme',
        'input[name=list]',
        '#kind',
        '#find',
        '[data-sort=run]',
      ]) {
        await page.tabTo(selector);
      }
      await page.tabTo(`tr[data-run="${first.run}"] button`);
      await page.press('ArrowDown');
      expect(await page.read(focused)).toBe(second.run);
      await page.press('Enter');
      await page.until('document.querySelector("#detail-run").textContent', second.run);
      expect(await page.read('document.activeElement.getAttribute("aria-expanded")')).toBe('true');
      expect(await page.read('location.hash')).toBe(`#${second.run}`);

      // Its run says more, others come and go, and the table is put in another order.
      const characters = `document.querySelector('tr[data-run="${second.run}"]').cells[5].textContent`;
      const before = await page.read(characters);
      await crowd.begin(MODELS.talks[3], 5);
      first.leave();
      await page.until(rows, 7);
      await page.until(`${characters} !== ${JSON.stringify(before)}`);
      expect(await page.read(focused)).toBe(second.run);
      for (const order of ['ascending', 'descending']) {
        await page.read('document.querySelector("[data-sort=model]").click()');
        await page.until('document.querySelector("#runs [aria-sort]").ariaSort', order);
      }
      await page.until('document.querySelectorAll("#runs tbody tr")[6].dataset.run', second.run);
      expect(await page.read(focused)).toBe(second.run);

      // Without its row, it goes to the nearest one.
      second.leave();
      await page.until(`document.querySelector('tr[data-run="${second.run}"]') === null`);
      expect(await page.read(focused)).toBe(third.run);
      await page.until(
        'document.querySelector("#timeline li:last-child .what").textContent',
        'Ended: cancelled',
      );

      await page.read('document.querySelector("#close-detail").focus()');
      await page.press('Enter');
      await page.until('document.querySelector("#detail-body").hidden');
      expect(page.errors).toEqual([]);
    },
    LIMIT_MS,
  );

  test(
    'pages of runs are turned, and runs found, by the keyboard as well',
    async () => {
      const crowd = await Crowd.start();
      await Promise.all([crowd.begin(MODELS.talks[0], 29), crowd.begin(MODELS.waits, 1)]);
      const page = await BrowserPage.open(command, crowd.holdfast.adminUrl);
      await page.until('document.querySelector("#page-number").textContent', '1–25 of 30');
      await page.tabTo('#next');
      await page.press('Enter');
      await page.until('document.querySelector("#page-number").textContent', '26–30 of 30');
      await page.until('document.querySelector("#announcer").textContent', 'Runs 26–30 of 30');
      // It cannot be turned any further, and still has the focus.
      await page.press('Enter');
      expect(await page.read(focused)).toBe('next');
      expect(await page.read(rows)).toBe(5);
      await page.read('document.querySelector("#find").focus()');
      await page.type('QWEN');
      await page.until(rows, 1);
      await page.type('x');
      await page.until('document.querySelector("#no-runs").textContent', 'No run is like that.');
      // A page that never stands still can be stopped.
      await page.read(
        'document.querySelector("#find").value = ""; document.querySelector("#find").dispatchEvent(new Event("input"))',
      );
      await page.read('document.querySelector("#pause").focus()');
      await page.press(' ');
      await page.until('document.querySelector("#connection").textContent', 'Paused');
      const [last] = await crowd.begin(MODELS.complete, 1);
      await last?.ended;
      // An update more has come by then.
      const feed = await openFeed(crowd.holdfast.adminUrl);
      for (let count = 0; count < 3; count++) await feed.until('update', () => true);
      expect(await page.text('#ended-count')).toBe('0');
      await page.press(' ');
      await page.until('document.querySelector("#ended-count").textContent', '1');
      expect(page.errors).toEqual([]);
    },
    LIMIT_MS,
  );

  test(
    'what clients write is shown as text',
    async () => {
      const crowd = await Crowd.start();
      const hostile = [
        '<img src=x onerror="window.hacked=1">',
        '"><script>window.hacked=1</script>',
        `${'x'.repeat(250)}<b>`,
        '\u202eevil\u0007',
        'javascript:window.hacked=1//\'"',
      ];
      for (const model of hostile) await crowd.begin(model);
      const page = await BrowserPage.open(command, crowd.holdfast.adminUrl);
      await page.until(rows, hostile.length);
      const shown = await page.read<string[]>(
        '[...document.querySelectorAll("#runs tbody tr")].map((row) => row.cells[1].textContent)',
      );
      expect(shown).toEqual([hostile[0], hostile[1], `${'x'.repeat(79)}…`, '\ufffdevil\ufffd', hostile[4]]);
      await page.read('document.querySelector("#runs tbody button").click()');
      await page.until('document.querySelector("#detail-facts").textContent.includes("onerror")');
      expect(await page.read('[window.hacked, document.images.length, document.scripts.length]')).toEqual([
        null,
        1,
        2,
      ]);
      expect(await page.violations()).toEqual([]);
      expect(page.errors).toEqual([]);
    },
    LIMIT_MS,
  );

  test(
    'answers are shown where that was asked for, and nowhere else',
    async () => {
      for (const content of [false, true]) {
        const crowd = await Crowd.start(content ? { status_page: { content } } : {});
        const [begun] = await crowd.begin(MODELS.talks[0]);
        const page = await BrowserPage.open(command, `${crowd.holdfast.adminUrl}/#${begun?.run}`);
        await page.until('document.querySelector("#detail-run").textContent', begun?.run);
        const text = 'document.querySelector("#detail-text textarea").value';
        if (content) {
          await page.until(`${text}.startsWith("The tide")`);
          expect(await page.violations()).toEqual([]);
        } else {
          expect(await page.read('document.querySelector("#detail-text").hidden')).toBe(true);
          expect(await page.read('document.documentElement.outerHTML.includes("tide")')).toBe(false);
        }
        expect(page.errors).toEqual([]);
      }
    },
    LIMIT_MS,
  );

  test(
    'a theme can be chosen, and is kept',
    async () => {
      const crowd = await Crowd.start();
      const page = await BrowserPage.open(command, crowd.holdfast.adminUrl);
      const background = () => page.read<string>('getComputedStyle(document.body).backgroundColor');
      await page.prefer('light');
      await page.until('document.querySelector("#serving")?.textContent', 'serving');
      const light = await background();
      await page.prefer('dark');
      const dark = await background();
      expect(dark).not.toBe(light);
      await page.read(
        'document.querySelector("#theme").value = "light"; document.querySelector("#theme").dispatchEvent(new Event("change"))',
      );
      expect(await background()).toBe(light);
      await page.reload();
      await page.until('document.querySelector("#serving")?.textContent', 'serving');
      expect(await background()).toBe(light);
      expect(await page.read('document.querySelector("#theme").value')).toBe('light');
      expect(await page.violations()).toEqual([]);
      expect(page.errors).toEqual([]);
    },
    LIMIT_MS,
  );

  test(
    'a page that has lost its replica says so',
    async () => {
      const crowd = await Crowd.start();
      await crowd.begin(MODELS.talks[0], 2);
      const page = await BrowserPage.open(command, crowd.holdfast.adminUrl);
      await page.until(rows, 2);
      await crowd.holdfast.kill('SIGKILL');
      await page.until('document.querySelector("#connection").textContent', 'Connection lost, trying again');
      expect(await page.text('#announcer')).toBe('The connection to the replica is lost.');
      expect(await page.read(rows)).toBe(2);
    },
    LIMIT_MS,
  );

  test(
    'a narrow window has all of it, too',
    async () => {
      const crowd = await Crowd.start();
      await crowd.begin(MODELS.recovered, 3);
      await crowd.begin(MODELS.waits, 3);
      const page = await BrowserPage.open(command, crowd.holdfast.adminUrl, { width: 400, height: 900 });
      await page.until(rows, 3);
      // Only the table is moved from side to side.
      expect(await page.read('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
      expect(await page.violations()).toEqual([]);
    },
    LIMIT_MS,
  );
}
