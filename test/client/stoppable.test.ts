import { once } from 'node:events';
import type { RequestListener, ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { type Fetch, StopError, stoppable } from '../../src/client/index.ts';
import { type Exchange, providerRequests, startProvider } from '../http-peer.ts';

const STOPPED = JSON.stringify({ id: 'run_1', object: 'holdfast.run', status: 'cancelled' });

/** Like the `fetch` of browsers, throws if it is called as a method. */
const browserFetch: Fetch = function (this: unknown, input, init) {
  if (this !== undefined) throw new TypeError('Illegal invocation');
  return fetch(input, init);
};

/** A page's backend that answers on demand, in front of a Holdfast that stops runs. */
async function start(
  holdfast: RequestListener = (_, response) =>
    void response.setHeader('content-type', 'application/json').end(STOPPED),
) {
  const asked: { readonly method: string | undefined; readonly url: string | undefined }[] = [];
  const stopUrl = await startProvider((request, response) => {
    asked.push({ method: request.method, url: request.url });
    holdfast(request, response);
  });
  const server = providerRequests();
  const url = await startProvider(server.listener);
  return {
    ...stoppable({ fetch: browserFetch }),
    url,
    asked,
    next: () => server.next(),
    stopUrl: `${stopUrl}/stop?signature=s`,
  };
}

/** Sends the headers of an answer with a stop URL, and its first event. */
const begin = (response: ServerResponse, stopUrl: string) =>
  void response.writeHead(200, { 'holdfast-stop-url': stopUrl }).write('data: begun\n\n');

const closed = ({ response }: Exchange) => once(response, 'close');

test('a stop ends the run by its URL, and the response as an abort does', async () => {
  const { fetch, stop, url, next, asked, stopUrl } = await start();
  const [answer, exchange] = await Promise.all([
    fetch(url),
    next().then((each) => {
      begin(each.response, stopUrl);
      return each;
    }),
  ]);
  const left = closed(exchange);
  const reading = answer.text();
  await Promise.all([stop(), expect(reading).rejects.toMatchObject({ name: 'AbortError' }), left]);
  expect(asked).toEqual([{ method: 'POST', url: '/stop?signature=s' }]);
});

test('a stop before the answer has begun ends the run once it has, and the request at once', async () => {
  const { fetch, stop, url, next, asked, stopUrl } = await start();
  const left = new AbortController();
  const answer = fetch(url, { signal: left.signal });
  const exchange = await next();
  const stopping = stop();
  await expect(answer).rejects.toMatchObject({ name: 'AbortError' });
  // Aborting the request doesn't cancel the stop.
  left.abort();
  begin(exchange.response, stopUrl);
  await Promise.all([stopping, closed(exchange)]);
  expect(asked).toHaveLength(1);
});

test('an abort closes the connection, and the run continues', async () => {
  const { fetch, url, next, asked, stopUrl } = await start();
  const left = new AbortController();
  const answer = fetch(url, { signal: left.signal });
  const exchange = await next();
  begin(exchange.response, stopUrl);
  const reading = (await answer).text();
  left.abort(new Error('unmounted'));
  await Promise.all([expect(reading).rejects.toThrow('unmounted'), closed(exchange)]);
  // A stop would have arrived before this request.
  await globalThis.fetch(`${stopUrl}&of=later`);
  expect(asked).toEqual([{ method: 'GET', url: '/stop?signature=s&of=later' }]);
});

test('a request whose signal has aborted before is not sent', async () => {
  const { fetch, url } = await start();
  const request = new Request(url, { signal: AbortSignal.abort(new Error('unmounted')) });
  await expect(fetch(request)).rejects.toThrow('unmounted');
});

test('the latest answer is the one that is stopped', async () => {
  const { fetch, stop, url, next, asked, stopUrl } = await start();
  for (const name of ['first', 'second']) {
    const answer = fetch(url);
    begin((await next()).response, `${stopUrl}&of=${name}`);
    await answer;
  }
  await stop();
  expect(asked).toEqual([{ method: 'POST', url: '/stop?signature=s&of=second' }]);
});

test('nothing is stopped where nothing was asked for', async () => {
  const { stop, asked } = await start();
  await stop();
  expect(asked).toEqual([]);
});

test('a stop that Holdfast refuses says why', async () => {
  const error = { message: 'The URL has expired.', code: 'url_expired' };
  const { fetch, stop, url, next, stopUrl } = await start((_, response) => {
    response.writeHead(403).end(JSON.stringify({ error }));
  });
  const answer = fetch(url);
  begin((await next()).response, stopUrl);
  await answer;
  const refused = await stop().catch((reason: unknown) => reason);
  expect(refused).toBeInstanceOf(StopError);
  expect(refused).toMatchObject(error);
});

test.each<[string, (exchange: Exchange) => void, string]>([
  [
    'has no URL for it',
    ({ response }) => void response.writeHead(200).write('data: begun\n\n'),
    'no holdfast-stop-url',
  ],
  ['has failed', ({ request }) => void request.socket.destroy(), 'has failed'],
  [
    'has a URL that leads nowhere',
    ({ response }) => begin(response, 'http://127.0.0.1:9/'),
    'could not be asked',
  ],
])('an answer that %s cannot be stopped', async (_, respond, message) => {
  const { fetch, stop, url, next } = await start();
  const answer = fetch(url).catch(() => {});
  respond(await next());
  await answer;
  await expect(stop()).rejects.toThrow(message);
  await expect(stop()).rejects.toThrow(StopError);
});
