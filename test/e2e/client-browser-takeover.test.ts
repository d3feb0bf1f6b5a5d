import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { compileClient } from '../client/compiled-client.ts';
import { needs } from '../needs.ts';
import { chromiumCommand, openPage } from './browser/chromium.ts';
import { openFront } from './browser/front.ts';
import { Deployment, modelOf } from './deployment.ts';
import { streamRequest } from './raw-client.ts';

const PAGE = new URL('browser/answer.html', import.meta.url);
const QUESTION = 'What holds fast?';
const TEXT = Array.from({ length: 150 }, (_, index) => `w${index} à 満潮 🌊`).join(' ');
const MIDDLE = 'w20';

interface Report {
  readonly error?: string;
  readonly text: string;
  readonly finish: readonly string[];
  readonly isDone: boolean;
  readonly run: string;
}

const chromium = await chromiumCommand();

if ('missing' in chromium) {
  describe('a page in Chromium', needs(chromium), () =>
    test('reads on after its replica was killed', () => {}),
  );
} else {
  const { command } = chromium;
  test('a page in Chromium reads on after its replica was killed', async () => {
    const { directory, remove } = compileClient();
    onTestFinished(remove);
    const deployment = await Deployment.start({ replicas: 2, checkpoint: { lease_ms: 600 } });
    onTestFinished(() => deployment.close());
    const { holdfast, other } = deployment;
    // Keep the stream open until its replica is killed, however long the browser takes.
    const faults = [{ kind: 'silence', at: { event: 200 } }] as const;
    deployment.plan(QUESTION, { parts: [{ text: TEXT }], faults });
    const setup = {
      endpoints: ['/a', '/b'],
      body: streamRequest(modelOf('vllm'), QUESTION),
      watch: MIDDLE,
    };
    const shown = Promise.withResolvers<void>();
    const reported = Promise.withResolvers<Report>();
    const answer = async (request: IncomingMessage, response: ServerResponse) => {
      const { url = '' } = request;
      if (url === '/') response.setHeader('content-type', 'text/html').end(readFileSync(PAGE));
      else if (url === '/setup') response.end(JSON.stringify(setup));
      else if (url.endsWith('.js')) {
        response.setHeader('content-type', 'text/javascript').end(readFileSync(join(directory, url)));
      } else {
        response.end();
        if (url === '/shown') shown.resolve();
        if (url === '/report') reported.resolve((await json(request)) as Report);
      }
    };
    const front = await openFront({ a: holdfast.url, b: other.url }, (...both) => void answer(...both));

    const page = openPage(command, `${front}/`);
    onTestFinished(() => page.close());
    await Promise.race([shown.promise, page.ended]);
    await holdfast.kill('SIGKILL');
    const report = await Promise.race([reported.promise, page.ended]);
    expect(report.error).toBeUndefined();
    expect(report).toMatchObject({ text: TEXT, finish: ['stop'], isDone: true });
    // The broken stream is the only error.
    expect(page.errors).toEqual([expect.stringMatching(/net::ERR_\w+ .*\/a\/v1\/chat\/completions$/)]);
    expect(deployment.requests(QUESTION)).toHaveLength(2);
    await other.logged(({ msg, run }) => msg === 'taken over' && run === report.run);
  }, 120_000);
}
