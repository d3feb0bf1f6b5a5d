import { describe, expect, onTestFinished, test } from 'vitest';
import { chromiumCommand } from '../e2e/browser/chromium.ts';
import { Deployment } from '../e2e/deployment.ts';
import { beginTalk, RESUMABLE, resumeTalk } from '../e2e/talk.ts';
import { needs } from '../needs.ts';
import { BrowserPage } from './browser-page.ts';
import { Crowd, MODELS } from './crowd.ts';
import { openFeed } from './feed-reader.ts';

const LIVE = 1000;
/** A directory for the screenshots of the documentation; without one, the tests take none. */
const SCREENSHOTS = process.env.HOLDFAST_SCREENSHOTS;
const LIMIT_MS = 240_000;

const PHONE = { width: 390, height: 844 };

const chromium = await chromiumCommand();

/** 1,000 live runs, and some that have ended in every possible way. */
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
  const first = [
    ...calm(1),
    crowd.begin(MODELS.waits, 2),
    ...calm(1),
    crowd.begin(MODELS.rescued, 2),
    crowd.begin(MODELS.cut, 3),
  ];
  const second = [...calm(1), crowd.begin(MODELS.cut, 2), crowd.begin(MODELS.waits, 1), ...calm(1)];
  const others = [...calm((LIVE - 56) / 4), crowd.begin(MODELS.cut, 26), crowd.begin(MODELS.waits, 4)];
  await Promise.all([...first, ...second, ...others]);
  return crowd;
}

/** Three tasks; one of them was started again, and is in the middle of its sixth step. */
async function startTasks(): Promise<Crowd> {
  const crowd = await Crowd.start();
  const task = 'invitations-2026-11';
  const { paced, recovered, cut, complete, refused } = MODELS;
  const models = [paced, paced, recovered, paced, recovered];
  const process = async (session: string) => {
    for (const [index, model] of models.entries())
      await (await crowd.step(model, index + 1, task, { session })).ended;
  };
  await process('first');
  for (const nth of [1, 2]) await (await crowd.step(complete, nth, 'a task that rests')).ended;
  await (await crowd.step(refused, 1, 'a task that failed')).ended;
  await process('second');
  await crowd.step(cut, 6, task, { session: 'second' });
  return crowd;
}

const FAMILY: readonly (readonly [task: string, steps: number, parent?: string])[] = [
  ['invitations-2026-11', 2],
  ['find-the-addresses', 2, 'invitations-2026-11'],
  ['search-the-old-letters', 3, 'find-the-addresses'],
  ['search-the-club-list', 1, 'find-the-addresses'],
  ['write-to-each', 4, 'invitations-2026-11'],
  ['a task that is alone', 2],
  ['translate-it', 1, 'a task of another replica'],
];

/** An agent with sub-agents, one of which has its own, and other tasks. */
async function startFamily(): Promise<Crowd> {
  const crowd = await Crowd.start({ status_page: { content: true } });
  for (const [task, steps, parent] of FAMILY) {
    const origin = parent === undefined ? {} : { parent };
    for (let nth = 1; nth <= steps; nth++) await (await crowd.step(MODELS.complete, nth, task, origin)).ended;
  }
  await crowd.step(MODELS.long[0], 4, 'search-the-old-letters', { parent: 'find-the-addresses' });
  return crowd;
}

if ('missing' in chromium) {
  describe('the status page in Chromium', needs(chromium), () => test('is shown', () => {}));
} else {
  const { command } = chromium;
  const taskRows = 'document.querySelectorAll("#tasks tbody").length';
  const busiest = 'document.querySelector("#tasks tbody")';
  const isScrolled =
    '(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)(document.querySelector(".scroll"))';
  const rows = 'document.querySelectorAll("#runs tbody tr").length';
  const chipsOf = (table: string) =>
    `[...document.querySelectorAll("${table} .chip")].map(({ textContent }) => textContent)`;
  const focused = 'document.activeElement.closest("tr")?.dataset.run ?? document.activeElement.id';

  test(
    '1,000 live runs: a small page without errors, and nothing that accessibility audits find, in both themes',
    async () => {
      const crowd = await startCrowd();
      const page = await BrowserPage.open(command, crowd.holdfast.adminUrl);
      await page.until('document.querySelector("#live").textContent', '1,000');
      expect(await page.read(rows)).toBe(25);
      expect(await page.text('#page-number')).toBe('1–25 of 1,000');

      const choose = async (model: string) => {
        const row = `[...document.querySelectorAll("#runs tbody tr")].find((row) => row.cells[1].textContent === ${JSON.stringify(model)})`;
        await page.until(`${row} !== undefined`);
        await page.read(`${row}.querySelector("button").click()`);
      };
      await choose(MODELS.waits);
      await page.until(
        '/^attempt 1 ▸ provider 5xx ▸ R1 ▸ attempt 2 ▸ .* ▸ R1$/.test(document.querySelector("#chain").textContent)',
      );
      expect(await page.read('document.querySelectorAll("*").length')).toBeLessThan(1200);
      await choose(MODELS.rescued);
      await page.until('document.querySelectorAll("#run-axis .gap-mark[data-kind=healed]").length > 0');
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
    'a run that was rescued twice looks like no other: in its row, and on its axis of time',
    async () => {
      const crowd = await Crowd.start({
        status_page: {
          replica_name: 'brest-1',
          trace_url: 'https://traces.example.com/{trace_id}',
          log_url: 'https://logs.example.com/?q={run_id}',
        },
      });
      const [rescued] = await crowd.begin(MODELS.rescued);
      const [calm] = await crowd.begin(MODELS.long[0]);
      if (!rescued || !calm) throw new Error('they have not begun');
      const page = await BrowserPage.open(command, crowd.holdfast.adminUrl);
      const row = ({ run }: { run: string }) => `document.querySelector('tr[data-run="${run}"]')`;
      const chip = (run: { run: string }) => `${row(run)}.querySelector(".chip")`;
      await page.until(
        `${row(rescued)}.querySelector(".state").textContent`,
        'rescuedafter connection reset + 1 more',
      );
      await page.until(`${chip(calm)}.textContent`, 'answering');
      const looks = (run: { run: string }) =>
        page.read<string[]>(
          `[getComputedStyle(${chip(run)}).color, getComputedStyle(${chip(run)}, "::before").borderTopWidth]`,
        );
      const [[colour, shape] = [], [otherColour, otherShape] = []] = [
        await looks(rescued),
        await looks(calm),
      ];
      expect(colour).not.toBe(otherColour);
      expect(shape).not.toBe(otherShape);
      const kinds = (run: { run: string }) =>
        page.read(`[...${row(run)}.querySelectorAll(".strip i")].map(({ dataset }) => dataset.kind)`);
      expect(await kinds(rescued)).toEqual(['asking', 'answering', 'gap', 'answering', 'gap', 'answering']);
      expect(await kinds(calm)).toEqual(['asking', 'answering']);

      await page.read(`${row(rescued)}.querySelector("button").click()`);
      await page.until('document.querySelectorAll("#run-axis .lane").length', 3);
      const all = (selector: string, property: string) =>
        page.read(`[...document.querySelectorAll("#run-axis ${selector}")].map((each) => each.${property})`);
      expect(await all('.lane', 'dataset.outcome')).toEqual(['interrupted', 'interrupted', 'answering']);
      expect(await all('.gap-mark', 'dataset.kind')).toEqual(['healed', 'healed']);
      // The seam of the last attempt is known only once the attempt has ended.
      expect(await all('.seam-mark', 'dataset.seam')).toEqual([
        expect.stringMatching(/exact|anchored/),
        'pending',
      ]);
      expect(await all('.lane-note', 'textContent')).toEqual([
        expect.stringMatching(/^✕ connection reset · gap /),
        expect.stringMatching(/^seam \w+ · ✕ connection reset · gap /),
        'continues · answering…',
      ]);
      expect(await page.text('#replica')).toBe('brest-1');
      // Without a trace of the run, there is no link to one.
      const links =
        '[...document.querySelectorAll("#links a")].map(({ textContent, href }) => [textContent, href])';
      expect(await page.read(links)).toEqual([['Log', `https://logs.example.com/?q=${rescued.run}`]]);
      await page.read('document.querySelector("#copy-resume").focus()');
      await page.press('Enter');
      await page.until('document.querySelector("#copy-resume").textContent', 'Copied');
      await page.read('document.querySelector("#find").focus()');
      await page.paste();
      const root = crowd.holdfast.url.replace('/v1', '');
      await page.until(
        'document.querySelector("#find").value',
        `curl -N '${root}/holdfast/v1/runs/${rescued.run}/stream' -H "authorization: Bearer $HOLDFAST_API_KEY"`,
      );
      for (const scheme of ['light', 'dark'] as const) {
        await page.prefer(scheme);
        expect(await page.violations(), scheme).toEqual([]);
      }
      expect(page.errors).toEqual([]);
    },
    LIMIT_MS,
  );

  test(
    'a run that was taken over shows the hand-over, and its replica is dead among the others',
    async () => {
      const deployment = await Deployment.start({ replicas: 3, checkpoint: { lease_ms: 1000 } });
      onTestFinished(() => deployment.close());
      const { holdfast, other } = deployment;
      const page = await BrowserPage.open(command, other.adminUrl);
      await page.until(chipsOf('#fleet'), ['serving', 'serving', 'serving']);
      // Start the run only now: the answer takes three seconds, and a browser may take longer to start.
      const client = await beginTalk(deployment, 'What comes after the tide?', RESUMABLE);
      await holdfast.kill('SIGKILL');
      await client.ended();
      await (await resumeTalk(other, client, client.payloads.length)).text();
      const port = new URL(holdfast.url).port;
      const dead = `[...document.querySelectorAll("#fleet tbody tr")].find((row) => row.textContent.includes(":${port}"))`;
      await page.until(`${dead}.querySelector(".chip").textContent`, 'dead');
      expect((await page.read<string[]>(chipsOf('#fleet'))).toSorted()).toEqual([
        'dead',
        'serving',
        'serving',
      ]);
      expect(await page.text('#fleet-note')).toBe('1 of 3 dead');

      await page.read('document.querySelector("input[value=ended]").click()');
      await page.until('document.querySelector("#runs tbody button") !== null');
      await page.read('document.querySelector("#runs tbody button").click()');
      await page.until('document.querySelectorAll("#run-axis .handover").length', 1);
      const notes = await page.read<string[]>(
        '[...document.querySelectorAll("#run-axis .lane")].map(({ textContent }) => textContent)',
      );
      expect(notes).toEqual([
        expect.stringMatching(/^↪ elsewhere✕ connection reset · gap /),
        expect.stringMatching(/^2 vllmseam exact · ✓ whole$/),
      ]);
      expect(await page.read('document.querySelector("#runs .strip i").dataset.kind')).toBe('elsewhere');
      for (const scheme of ['light', 'dark'] as const) {
        await page.prefer(scheme);
        if (SCREENSHOTS) await page.screenshot(`${SCREENSHOTS}/status-fleet-${scheme}.png`);
        expect(await page.violations(), scheme).toEqual([]);
      }
      expect(page.errors).toEqual([]);
    },
    LIMIT_MS,
  );

  test(
    'a replica that never had a run says how to begin one, with its own address',
    async () => {
      const crowd = await Crowd.start();
      const page = await BrowserPage.open(command, crowd.holdfast.adminUrl);
      await page.until('document.querySelector("#first-request").hidden', false);
      const shown = await page.text('#first-command');
      expect(shown).toContain(`curl -N '${crowd.holdfast.url}/chat/completions'`);
      await page.tabTo('#copy-first');
      await page.press('Enter');
      await page.until('document.querySelector("#copy-first").textContent', 'Copied');
      await page.read('document.querySelector("#find").focus()');
      await page.paste();
      await page.until('document.querySelector("#find").value', shown);
      for (const scheme of ['light', 'dark'] as const) {
        await page.prefer(scheme);
        if (SCREENSHOTS) await page.screenshot(`${SCREENSHOTS}/status-empty-${scheme}.png`);
        expect(await page.violations(), scheme).toEqual([]);
      }
      await crowd.begin(MODELS.long[0]);
      await page.until('document.querySelector("#first-request").hidden');
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

      // The focus must stay while its run goes further, other runs come and go, and the table is sorted differently.
      const characters = `document.querySelector('tr[data-run="${second.run}"]').cells[6].textContent`;
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

      // Once its row is gone, the focus moves to the nearest one.
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
      // The button on the last page does nothing, and keeps the focus.
      await page.press('Enter');
      expect(await page.read(focused)).toBe('next');
      expect(await page.read(rows)).toBe(5);
      await page.read('document.querySelector("#find").focus()');
      await page.type('QWEN');
      await page.until(rows, 1);
      await page.type('x');
      await page.until('document.querySelector("#no-runs").textContent', 'No run is like that.');
      // Users can pause a page that would never stand still.
      await page.read(
        'document.querySelector("#find").value = ""; document.querySelector("#find").dispatchEvent(new Event("input"))',
      );
      await page.read('document.querySelector("#pause").focus()');
      await page.press(' ');
      await page.until('document.querySelector("#connection").textContent', 'Paused');
      const [last] = await crowd.begin(MODELS.complete, 1);
      await last?.ended;
      // Wait until at least one more update has been sent.
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
    'a task is shown with its steps on one axis: their attempts, their gaps, and those that were replayed',
    async () => {
      const crowd = await startTasks();
      const page = await BrowserPage.open(command, crowd.holdfast.adminUrl);
      await page.until('document.querySelector("#tasks-count").textContent', '3');
      await page.read('document.querySelector("input[value=tasks]").click()');
      await page.until(taskRows, 3);
      expect(await page.read('document.querySelector("#runs").hidden')).toBe(true);
      // Task names reveal what owners do: without status_page.content, they aren't shown.
      expect(await page.read('document.documentElement.outerHTML.includes("invitations")')).toBe(false);

      await page.read(`${busiest}.querySelector("button").focus()`);
      await page.press('Enter');
      await page.until('document.querySelectorAll(".step").length', 6);
      const cells = `[...${busiest}.rows[0].cells].slice(1, 6).map((cell) => cell.textContent)`;
      // Its last step was cut, and continues.
      await page.until(`${cells}[0]`, 'answering');
      const [, steps, recoveries, paid, saved] = await page.read<string[]>(cells);
      expect(steps).toBe('6');
      for (const figure of [recoveries, paid, saved]) expect(Number(figure)).toBeGreaterThan(0);
      const said = await page.read<string[]>(
        '[...document.querySelectorAll(".step .said")].map(({ textContent }) => textContent)',
      );
      expect(said.slice(0, 5)).toEqual([
        'completereplayed',
        'completereplayed',
        'recoveredreplayed3 attempts',
        'completereplayed',
        'recoveredreplayed3 attempts',
      ]);
      const kinds = (nth: number) =>
        page.read(
          `[...document.querySelectorAll(".step")[${nth - 1}].querySelectorAll(".track i")].map(({ dataset }) => dataset.kind)`,
        );
      expect(await kinds(1)).toEqual(['asking', 'answering', 'replay']);
      expect(await kinds(3)).toEqual([
        'asking',
        'answering',
        'gap',
        'answering',
        'gap',
        'answering',
        'replay',
      ]);
      // The running step grows, and nothing exceeds the axis.
      const ends = `[...document.querySelectorAll(".track i")].map((mark) => Math.round(parseFloat(mark.style.insetInlineStart) + parseFloat(mark.style.inlineSize)))`;
      expect(await page.read(`Math.max(...${ends})`)).toBe(100);
      const took = 'document.querySelector(".step:last-child .took").textContent';
      const before = await page.read(took);
      await page.until(`${took} !== ${JSON.stringify(before)}`);

      // Clicking a step opens its run.
      await page.press('ArrowDown');
      expect(await page.read('document.activeElement.textContent')).toBe('Step 1');
      for (let count = 0; count < 2; count++) await page.press('ArrowDown');
      await page.press('Enter');
      await page.until('document.querySelector("#chain").textContent.endsWith("recovered")');
      expect(await page.text('#detail-facts')).toContain('step 3 of task_');
      expect(await page.read('document.activeElement.getAttribute("aria-expanded")')).toBe('true');
      for (const scheme of ['light', 'dark'] as const) {
        await page.prefer(scheme);
        if (SCREENSHOTS) await page.screenshot(`${SCREENSHOTS}/status-tasks-${scheme}.png`);
        expect(await page.violations(), scheme).toEqual([]);
      }
      expect(page.errors).toEqual([]);

      // The same on a phone, opened by its address, with names because content is shown.
      const id = await page.read<string>(`${busiest}.dataset.task`);
      const phone = await BrowserPage.open(command, `${crowd.holdfast.adminUrl}/#${id}`, PHONE);
      await phone.until('document.querySelectorAll(".step").length', 6);
      expect(await phone.read('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
      expect(await phone.read(isScrolled)).toBe(false);
      expect(await phone.read('document.querySelector(".steps").offsetWidth <= innerWidth')).toBe(true);
      for (const scheme of ['light', 'dark'] as const) {
        await phone.prefer(scheme);
        await phone.read('document.querySelector("#runs-heading").scrollIntoView()');
        if (SCREENSHOTS) await phone.screenshot(`${SCREENSHOTS}/status-tasks-phone-${scheme}.png`);
        expect(await phone.violations(), scheme).toEqual([]);
      }
      expect(phone.errors).toEqual([]);
    },
    LIMIT_MS,
  );

  test(
    'tasks have their names where content is shown, and as text; without tasks the page says how to begin one',
    async () => {
      const crowd = await Crowd.start({ status_page: { content: true } });
      const page = await BrowserPage.open(command, crowd.holdfast.adminUrl);
      await page.until('document.querySelector("#serving")?.textContent', 'serving');
      await page.read('document.querySelector("input[value=tasks]").click()');
      await page.until('document.querySelector("#no-runs").textContent.includes("Holdfast-Task")');
      expect(await page.violations()).toEqual([]);
      const hostile = '<img src=x onerror="window.hacked=1">';
      await crowd.step(MODELS.long[0], 1, hostile);
      await crowd.step(MODELS.refused, 1, 'another');
      await page.until(taskRows, 2);
      const names = '[...document.querySelectorAll("#tasks .run bdi")].map(({ textContent }) => textContent)';
      expect(await page.read(names)).toEqual(['another', hostile]);
      await page.until('document.querySelector("#tasks .chip").textContent', 'last step failed');
      await page.read('document.querySelector("#find").focus()');
      await page.type('ANOTHER');
      await page.until(taskRows, 1);
      await page.read('document.querySelector("[data-sort=steps]").click()');
      await page.until('document.querySelector("#tasks-caption").textContent', 'Tasks, by steps');
      expect(await page.read('window.hacked')).toBeUndefined();
      expect(page.errors).toEqual([]);
    },
    LIMIT_MS,
  );

  test(
    'sub-agents are shown below their agents, which say what all of them have cost together',
    async () => {
      const crowd = await startFamily();
      const page = await BrowserPage.open(command, crowd.holdfast.adminUrl);
      await page.until('document.querySelector("#tasks-count").textContent', String(FAMILY.length));
      await page.read('document.querySelector("input[value=tasks]").click()');
      await page.until(taskRows, FAMILY.length);
      const tree =
        '[...document.querySelectorAll("#tasks tbody th")].map((cell) => "> ".repeat(cell.style.getPropertyValue("--depth")) + cell.querySelector("bdi").textContent)';
      const row = (task: string) =>
        `[...document.querySelectorAll("#tasks tbody tr:first-child")].find((row) => row.querySelector("bdi").textContent === ${JSON.stringify(task)})`;
      const agents = [
        'invitations-2026-11',
        '> find-the-addresses',
        '> > search-the-old-letters',
        '> > search-the-club-list',
        '> write-to-each',
      ];
      const others = ['translate-it', 'a task that is alone'];
      // The agent comes first, although the last step belongs to one of its sub-agents.
      expect(await page.read(tree)).toEqual([...agents, ...others]);

      const tokens = (task: string) =>
        page.read<number[]>(
          `[...${row(task)}.cells[4].children].map(({ textContent }) => Number.parseInt(textContent.replace(",", "")))`,
        );
      const family = agents.map((task) => task.replaceAll('> ', ''));
      const own = await Promise.all(family.map(async (task) => (await tokens(task))[0] ?? 0));
      const all = await Promise.all(family.map(async (task) => (await tokens(task))[1]));
      const sumOf = (figures: readonly number[]) => figures.reduce((sum, each) => sum + each, 0);
      expect(Math.min(...own)).toBeGreaterThan(0);
      expect(all).toEqual([sumOf(own), sumOf(own.slice(1, 4)), null, null, null]);

      const part = (task: string) =>
        page.read(
          `(({ textContent, offsetWidth, hidden }) => hidden ? "" : [textContent, offsetWidth > 1])(${row(task)}.querySelector(".family").lastChild)`,
        );
      expect(await part('invitations-2026-11')).toBe('');
      expect(await part('search-the-club-list')).toEqual(['part of find-the-addresses', false]);
      expect(await part('translate-it')).toEqual(['part of a task of another replica', true]);
      expect(await page.read('document.querySelectorAll("#tasks [role]").length')).toBe(0);

      // A sub-agent has its own steps, like any other task.
      const letters = `${row('search-the-old-letters')}.querySelector("button").click()`;
      await page.read(letters);
      await page.until('document.querySelectorAll(".step").length', 4);
      for (const scheme of ['light', 'dark'] as const) {
        await page.prefer(scheme);
        if (SCREENSHOTS) await page.screenshot(`${SCREENSHOTS}/status-tree-${scheme}.png`);
        expect(await page.violations(), scheme).toEqual([]);
      }

      await page.read(letters);
      await page.until('document.querySelectorAll(".step").length', 0);

      // Sorting reorders siblings, but keeps them below their parents.
      await page.read('document.querySelector("#tasks [data-sort=task]").click()');
      await page.until('document.querySelector("#tasks-caption").textContent', 'Tasks, by task');
      const [agent, find, old, club, write] = agents;
      const sorted = [agent, find, club, old, write];
      expect(await page.read(tree)).toEqual([others[1], ...sorted, others[0]]);

      // Tasks that name each other as parents have no parent.
      await crowd.step(MODELS.long[0], 1, 'hen', { parent: 'egg' });
      await crowd.step(MODELS.long[0], 1, 'egg', { parent: 'hen' });
      await page.until(tree, [others[1], 'egg', 'hen', ...sorted, others[0]]);
      expect(await part('egg')).toEqual(['part of hen', true]);

      await page.tabTo('.fold[aria-label="2 below find-the-addresses"]');
      await page.press('Enter');
      await page.until(taskRows, FAMILY.length);
      const isFolded = 'document.activeElement.getAttribute("aria-expanded")';
      expect(await page.read(isFolded)).toBe('false');
      expect(await tokens('invitations-2026-11')).toEqual([own[0], all[0]]);
      // Arrow keys move between rows, past the buttons that fold them.
      await page.read(`${row('invitations-2026-11')}.querySelector(".run").focus()`);
      await page.press('ArrowDown');
      expect(await page.read('document.activeElement.textContent')).toBe('find-the-addresses');
      await page.press('Tab');
      await page.press(' ');
      await page.until(taskRows, FAMILY.length + 2);
      expect(await page.read(isFolded)).toBe('true');

      // Search results are flat: the matching task, and the tasks that are part of it.
      await page.read('document.querySelector("#find").focus()');
      await page.type('ADDRESSES');
      await page.until(taskRows, 3);
      expect(await page.read(tree)).toEqual([
        'find-the-addresses',
        'search-the-club-list',
        'search-the-old-letters',
      ]);
      expect(await part('search-the-club-list')).toEqual(['part of find-the-addresses', true]);
      expect(await page.read('document.querySelectorAll(".fold:not([hidden])").length')).toBe(0);
      expect(await page.violations()).toEqual([]);

      expect(page.errors).toEqual([]);

      const phone = await BrowserPage.open(command, crowd.holdfast.adminUrl, PHONE);
      await phone.until('document.querySelector("#tasks-count").textContent', String(FAMILY.length + 2));
      await phone.read('document.querySelector("input[value=tasks]").click()');
      await phone.until(taskRows, FAMILY.length + 2);
      expect(await phone.read('document.querySelector("#runs").checkVisibility()')).toBe(false);
      const isIndented = (name: string) =>
        phone.read(
          `[...document.querySelectorAll("#tasks .run")].find(({ textContent }) => textContent === ${JSON.stringify(name)}).offsetLeft > ${busiest}.querySelector(".run").offsetLeft`,
        );
      expect(await isIndented('invitations-2026-11')).toBe(false);
      expect(await isIndented('find-the-addresses')).toBe(true);
      expect(await phone.read('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
      expect(await phone.read(isScrolled)).toBe(false);
      for (const scheme of ['light', 'dark'] as const) {
        await phone.prefer(scheme);
        await phone.read('document.querySelector("#runs-heading").scrollIntoView()');
        if (SCREENSHOTS) await phone.screenshot(`${SCREENSHOTS}/status-tree-phone-${scheme}.png`);
        expect(await phone.violations(), scheme).toEqual([]);
      }
      expect(phone.errors).toEqual([]);
    },
    LIMIT_MS,
  );

  test(
    'sub-agents on another page than their agent say whose part they are',
    async () => {
      const crowd = await Crowd.start();
      await (await crowd.step(MODELS.complete, 1, 'agent')).ended;
      const parts = Array.from({ length: 26 }, (_, nth) =>
        crowd.step(MODELS.complete, 1, `sub-agent ${nth}`, { parent: 'agent' }),
      );
      await Promise.all(parts);
      const page = await BrowserPage.open(command, crowd.holdfast.adminUrl);
      await page.until('document.querySelector("#tasks-count").textContent', '27');
      await page.read('document.querySelector("input[value=tasks]").click()');
      const seen =
        '[...document.querySelectorAll("#tasks .family > :last-child")].filter(({ offsetWidth }) => offsetWidth > 1).map(({ textContent }) => textContent)';
      await page.until('document.querySelector("#page-number").textContent', '1–25 of 27');
      expect(await page.read(seen)).toEqual([]);
      const agent = await page.read<string>(`${busiest}.dataset.task`);
      await page.read('document.querySelector("#next").click()');
      await page.until(seen, [`part of ${agent}`, `part of ${agent}`]);
      expect(page.errors).toEqual([]);
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
      // The last known state turns grey and shows its time; nothing is shown as serving any more.
      expect(await page.text('#stale')).toMatch(/What you see is from \d\d:\d\d:\d\d/);
      expect(await page.read('getComputedStyle(document.querySelector(".runs").parentNode).filter')).toBe(
        'grayscale(1)',
      );
      expect(await page.text('#serving')).toBe('unreachable');
      expect(await page.read(chipsOf('#fleet'))).toEqual(['unreachable']);
      for (const scheme of ['light', 'dark'] as const) {
        await page.prefer(scheme);
        if (SCREENSHOTS) await page.screenshot(`${SCREENSHOTS}/status-lost-${scheme}.png`);
        expect(await page.violations(), scheme).toEqual([]);
      }
    },
    LIMIT_MS,
  );

  test(
    'a narrow window has all of it, too',
    async () => {
      const crowd = await Crowd.start();
      await crowd.begin(MODELS.recovered, 3);
      await crowd.begin(MODELS.waits, 3);
      const page = await BrowserPage.open(command, crowd.holdfast.adminUrl, PHONE);
      await page.until(rows, 3);
      const isWide = 'document.documentElement.scrollWidth > innerWidth';
      expect(await page.read(isWide)).toBe(false);
      expect(await page.violations()).toEqual([]);

      // A card opens and closes in place.
      const second = 'document.querySelector("#runs tbody tr:nth-child(2)")';
      await page.read(`${second}.querySelector("button").click()`);
      await page.until(`${second}.querySelectorAll("#detail .lane").length`, 2);
      expect(await page.read(isWide)).toBe(false);
      for (const scheme of ['light', 'dark'] as const) {
        await page.prefer(scheme);
        await page.read('document.querySelector("#runs-heading").scrollIntoView()');
        if (SCREENSHOTS) await page.screenshot(`${SCREENSHOTS}/status-phone-${scheme}.png`);
        expect(await page.violations(), scheme).toEqual([]);
      }
      await page.read(`${second}.querySelector("#chain").click()`);
      expect(await page.read(`${second}.querySelector("#detail-body").hidden`)).toBe(false);
      await page.read('document.querySelector("#close-detail").click()');
      await page.until('document.querySelector("#detail").parentNode.className', 'side');
      expect(await page.read(`${second} === document.activeElement.closest("tr")`)).toBe(true);

      // Its row may leave the page with the details in it, and come back.
      await page.read(`${second}.querySelector("button").click()`);
      await page.until(`${second}.querySelector("#detail .lane") !== null`);
      await page.read('document.querySelector("input[value=ended]").click()');
      await page.until('document.querySelector("#detail").parentNode.className', 'side');
      await page.read('document.querySelector("input[value=live]").click()');
      await page.until(`${second}.querySelector("#detail .lane") !== null`);
      expect(page.errors).toEqual([]);
    },
    LIMIT_MS,
  );
}
