import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Balancer } from '../e2e/balancer.ts';
import { chromiumCommand } from '../e2e/browser/chromium.ts';
import { Deployment, modelOf } from '../e2e/deployment.ts';
import { fetchRuns } from '../e2e/talk.ts';
import { needs } from '../needs.ts';
import { BrowserPage } from '../status/browser-page.ts';
import { ChatApp, chatApp } from './chat-app.ts';
import { Recorder } from './recorder.ts';

const KEY = 'sk-of-the-provider-a1b2c3';
const CREDENTIAL = { authorization: `Bearer ${KEY}` };
const QUESTION = 'What holds fast?';
const TEXT = Array.from({ length: 100 }, (_, index) => `w${index} 満潮 🌊`).join(' ');
/** Once the page shows this, the answer has begun and is far from its end. */
const MIDDLE = 'w20 ';
const BUILD_LIMIT_MS = 240_000;
const LIMIT_MS = 120_000;

const [chromium, app] = await Promise.all([chromiumCommand(), chatApp()]);
const shown = `document.querySelector('[data-role=assistant]')?.textContent ?? ''`;
const button = `document.querySelector('button')?.textContent`;

/**
 * Puts the example in front of two replicas behind one address, and opens a page that has asked and shows the beginning
 * of the answer.
 */
async function ask() {
  if (!('command' in chromium)) throw new Error(chromium.missing);
  const [front, holdfast] = await Promise.all([Recorder.open(), Recorder.open()]);
  const deployment = await Deployment.start({
    replicas: 0,
    checkpoint: { lease_ms: 600, durability: 'write_ahead' },
  });
  onTestFinished(() => deployment.close());
  const listen = { port: 0, admin_port: 0, cors_origins: [front.origin] };
  const first = await deployment.addReplica(listen);
  const second = await deployment.addReplica(listen);
  const balancer = await Balancer.open([first.url, second.url]);
  holdfast.lead(balancer.url);
  const environment = {
    HOLDFAST_URL: new URL(balancer.url).origin,
    HOLDFAST_PUBLIC_URL: holdfast.origin,
    API_KEY: KEY,
    MODEL: modelOf('vllm'),
  };
  let server = await ChatApp.start(environment);
  front.lead(server.url);
  onTestFinished(async () => {
    await server.close();
    for (const each of [front, holdfast, balancer]) each.close();
  });
  deployment.plan(QUESTION, { parts: [{ text: TEXT }], delay_ms: 20, prefill: 'vllm' });

  const page = await BrowserPage.open(chromium.command, `${front.origin}/`);
  await page.until(`${button} === 'Send'`);
  await page.read("document.querySelector('input').focus()");
  await page.type(QUESTION);
  await page.press('Enter');
  await page.until(`(${shown}).includes('${MIDDLE}')`);
  const received = () => front.sent + holdfast.sent;
  /** Kills the page's server and starts another one in its place. */
  const restartServer = async () => {
    server = await ChatApp.start(environment, await server.kill());
    front.lead(server.url);
  };
  return { page, deployment, first, second, received, restartServer };
}

/** Checks that the page shows the whole answer, once. */
async function showsAll(page: BrowserPage): Promise<void> {
  await page.until(`${button} === 'Send' && (${shown}).endsWith('w99 満潮 🌊')`);
  expect(await page.read(shown)).toBe(`The model${TEXT}`);
  expect(await page.read("document.querySelectorAll('article').length")).toBe(2);
}

const isWhole = (page: BrowserPage) => page.read<boolean>(`(${shown}).includes('w99')`);

async function runsOf(...[replica]: Parameters<typeof fetchRuns>) {
  const { data } = (await (await fetchRuns(replica, '', CREDENTIAL)).json()) as {
    data: readonly { readonly status: string }[];
  };
  return data.map(({ status }) => status);
}

describe('the chat of examples/use-chat, in Chromium', needs(chromium, app), () => {
  beforeAll(async () => {
    if ('build' in app) await app.build();
  }, BUILD_LIMIT_MS);

  test(
    'shows the whole answer once after a reload in its middle, and the provider is asked once',
    async () => {
      const { page, deployment, first, received } = await ask();
      await page.reload();
      await page.until(`(${shown}).includes('${MIDDLE}')`);
      expect(await isWhole(page)).toBe(false);
      await showsAll(page);
      expect(await page.violations()).toEqual([]);
      await page.reload();
      await showsAll(page);
      expect(deployment.requests(QUESTION)).toHaveLength(1);
      expect(await runsOf(first)).toEqual(['complete']);
      expect(page.errors).toEqual([]);
      // The page gets the stop URL, but no API key.
      expect(received()).toContain('holdfast-stop-url: http://127.0.0.1:');
      expect(received()).not.toContain(KEY);
    },
    LIMIT_MS,
  );

  test(
    'ends the run when it is stopped, and a reload does not continue it',
    async () => {
      const { page, deployment, first } = await ask();
      await page.read("document.querySelector('button').click()");
      await page.until(`${button} === 'Send'`);
      expect(await page.text('[role=alert]')).toBeUndefined();
      await deployment.abandoned(QUESTION);
      await expect.poll(() => runsOf(first), { timeout: LIMIT_MS }).toEqual(['cancelled']);
      expect(await isWhole(page)).toBe(false);

      await page.reload();
      await page.until(`${button} === 'Send' && (${shown}).includes('${MIDDLE}')`);
      expect(`The model${TEXT}`).toContain(await page.read<string>(shown));
      expect(await isWhole(page)).toBe(false);
      expect(await page.text('[role=alert]')).toBeUndefined();
      expect(await runsOf(first)).toEqual(['cancelled']);
      expect(deployment.requests(QUESTION)).toHaveLength(1);
      expect(page.errors).toEqual([]);
    },
    LIMIT_MS,
  );

  test.for([
    ['and the page stays', false],
    ['and the page is reloaded', true],
  ] as const)(
    'shows the whole answer once when the replica that delivers it is killed, %s',
    { timeout: LIMIT_MS },
    async ([, isReloaded]) => {
      const { page, deployment, first, second } = await ask();
      await first.kill('SIGKILL');
      if (isReloaded) await page.reload();
      await showsAll(page);
      expect(deployment.requests(QUESTION)).toHaveLength(2);
      expect(await runsOf(second)).toEqual(['complete']);
      expect(page.errors).toEqual([]);
    },
  );

  test(
    'shows the whole answer once after the server of the page has died, and the provider is asked once',
    async () => {
      const { page, deployment, first, restartServer } = await ask();
      await restartServer();
      await page.reload();
      await showsAll(page);
      expect(deployment.requests(QUESTION)).toHaveLength(1);
      expect(await runsOf(first)).toEqual(['complete']);
    },
    LIMIT_MS,
  );

  test(
    'can be stopped after a reload at another replica than the one it began at',
    async () => {
      const { page, deployment, first, second } = await ask();
      await first.kill('SIGKILL');
      await page.reload();
      await deployment.asked(QUESTION, 2);
      await page.until(`${button} === 'Stop'`);
      await page.read("document.querySelector('button').click()");
      await page.until(`${button} === 'Send'`);
      await expect.poll(() => runsOf(second), { timeout: LIMIT_MS }).toEqual(['cancelled']);
      expect(await page.text('[role=alert]')).toBeUndefined();
      expect(await isWhole(page)).toBe(false);
    },
    LIMIT_MS,
  );
});
