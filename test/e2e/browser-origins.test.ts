import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { needs } from '../needs.ts';
import { chromiumCommand, openPage } from './browser/chromium.ts';
import { openFront } from './browser/front.ts';
import { Deployment, modelOf } from './deployment.ts';
import { streamRequest } from './raw-client.ts';
import { payloadsOf } from './stream-client.ts';
import { saidBy } from './talk.ts';

const PAGE = new URL('browser/origins.html', import.meta.url);
const TEXT = 'Kelp grows where the water is cold, clear and never still.';

interface Report {
  readonly refused: Readonly<Record<string, unknown>>;
  readonly stream: string;
  readonly run: string;
  readonly state: unknown;
  readonly replay: { readonly status: number; readonly text: string };
  readonly list: unknown;
  readonly purged: unknown;
}

const chromium = await chromiumCommand();

if ('missing' in chromium) {
  describe('a page in Chromium', needs(chromium), () =>
    test('uses the API of another origin only where that is allowed', () => {}),
  );
} else {
  const { command } = chromium;
  test('a page in Chromium uses the API of another origin only where that is allowed', async () => {
    const deployment = await Deployment.start({ apiKey: 'of the operator' });
    onTestFinished(() => deployment.close());
    deployment.plan('a stolen answer', { parts: [{ text: TEXT }] });
    deployment.plan('an answer', { parts: [{ text: TEXT }] });
    const reported = Promise.withResolvers<Report>();
    const page = async (request: IncomingMessage, response: ServerResponse) => {
      if (request.url === '/') response.setHeader('content-type', 'text/html').end(readFileSync(PAGE));
      else if (request.url === '/setup') response.end(JSON.stringify(setup));
      else reported.resolve((await json(request)) as Report);
    };
    const origin = await openFront({}, (...both) => void page(...both));
    const open = await deployment.addReplica({ port: 0, admin_port: 0, cors_origins: [origin] });
    const rootOf = ({ url }: { readonly url: string }) => url.replace(/\/v1$/, '');
    const setup = {
      closed: rootOf(deployment.holdfast),
      open: rootOf(open),
      stolen: streamRequest(modelOf('vllm'), 'a stolen answer'),
      asked: streamRequest(modelOf('vllm'), 'an answer'),
    };

    const opened = openPage(command, `${origin}/`);
    onTestFinished(() => opened.close());
    const report = await Promise.race([reported.promise, opened.ended]);
    // Chromium hides the status and body from the page.
    expect(report.refused).toEqual({
      preflighted: 'TypeError',
      simple: 'TypeError',
      blind: { type: 'opaque', status: 0, text: '' },
      models: 'TypeError',
      image: 'refused',
    });
    expect(deployment.requests('a stolen answer')).toEqual([]);
    expect(deployment.requests('an answer')).toHaveLength(1);
    expect(report.run).toMatch(/^run_/);
    expect(report.state).toMatchObject({ id: report.run, status: 'complete', text: TEXT });
    expect(report.replay.status).toBe(200);
    for (const answer of [report.stream, report.replay.text])
      expect(saidBy(payloadsOf(answer))).toMatchObject({ text: TEXT, done: true });
    expect(report.list).toMatchObject({ data: [{ id: report.run }] });
    expect(report.purged).toMatchObject({ id: report.run, purged: true });
  }, 60_000);
}
