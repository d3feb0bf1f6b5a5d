import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { framesOf, saying, words } from '../client/answers.ts';
import { compileClient } from '../client/compiled-client.ts';
import { cut, Fleet, refuse, stall, whole } from '../client/fleet.ts';
import { needs } from '../needs.ts';
import { chromiumCommand, openPage } from './browser/chromium.ts';

const PAGE = new URL('browser/page.html', import.meta.url);
const EVENTS = saying(...words(40));
const CUTS = 8;
/** What a deployment must allow if its pages come from another origin. */
const CORS = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'POST, DELETE',
  'access-control-allow-headers':
    'authorization, content-type, holdfast-resume, idempotency-key, last-event-id',
  'access-control-expose-headers': 'holdfast-run-id, retry-after, retry-after-ms',
};

interface Report {
  readonly error?: string;
  readonly cut: string;
  readonly asRequest: string;
  readonly lost: string;
  readonly run: string;
}

const chromium = await chromiumCommand();

if ('missing' in chromium) {
  describe('a page in Chromium', needs(chromium), () => test('runs the client', () => {}));
} else {
  const { command } = chromium;
  test('a page in Chromium reads on over reset connections', async () => {
    const { directory, remove } = compileClient();
    onTestFinished(remove);
    const reported = Promise.withResolvers<Report>();
    /** The first replica shares its origin with the page; the second one doesn't. */
    const other = async (request: IncomingMessage, response: ServerResponse) => {
      const { method, url = '' } = request;
      if (method === 'OPTIONS') response.writeHead(204).end();
      else if (url === '/') response.setHeader('content-type', 'text/html').end(readFileSync(PAGE));
      else if (url === '/setup') response.end(JSON.stringify({ endpoints: fleet.urls }));
      else if (url === '/report') {
        response.end();
        reported.resolve((await json(request)) as Report);
      } else if (url.endsWith('.js')) {
        response.setHeader('content-type', 'text/javascript').end(readFileSync(join(directory, url)));
      } else response.writeHead(404).end();
    };
    const fleet = await Fleet.start(EVENTS, { headers: CORS, other: (...both) => void other(...both) });
    fleet.script(
      ...Array.from({ length: CUTS }, (_, index) => cut(700 + 37 * index, index % 2 ? 'fin' : 'reset')),
      whole,
      ...[cut(1500), whole],
      ...[cut(1500, 'eof'), refuse(401, 'unauthorised')],
      stall(1500),
    );

    const page = openPage(command, `${fleet.urls[0]}/`);
    onTestFinished(() => page.close());
    const report = await Promise.race([reported.promise, page.ended]);
    expect(report.error).toBeUndefined();
    expect(report.cut).toBe(framesOf(EVENTS));
    expect(report.asRequest).toBe(framesOf(EVENTS));
    expect(report.lost).toBe('StreamInterruptedError');
    await fleet.requested(CUTS + 1 + 2 + 2 + 2);
    expect(fleet.asked.at(-1)).toMatchObject({
      method: 'DELETE',
      path: `/holdfast/v1/runs/${report.run}`,
      headers: { authorization: 'Bearer client-key' },
    });
    expect(new Set(fleet.asked.map(({ replica }) => replica))).toEqual(new Set([0, 1]));
  }, 60_000);
}
