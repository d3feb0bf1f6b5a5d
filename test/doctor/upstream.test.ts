import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Finding } from '../../src/doctor/finding.ts';
import { PROBE } from '../../src/plans/seam/mode.ts';
import { temporaryDirectory } from '../cli-process.ts';
import { startProvider as startPeer } from '../http-peer.ts';
import { type Provider, type ProviderOptions, startProvider } from '../provider/provider.ts';
import type { Plan } from '../provider/script.ts';
import { ConnectProxy } from '../proxy/connect-proxy.ts';
import { COUNT, type Diagnosis, diagnose } from './doctor-process.ts';

/** Each test starts processes, possibly on a busy machine. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 });

const KEY = 'sk-proj-a-key-that-nobody-may-see';

async function start(plan: Partial<Plan> = {}, options: ProviderOptions = {}): Promise<Provider> {
  const provider = await startProvider({
    scripts: { counter: { parts: [{ text: COUNT }], ...plan } },
    ...options,
  });
  const begun = { parts: [{ text: `${PROBE.said}ve, six, seven, eight, nine` }], ...plan };
  provider.respond(({ body }) => (JSON.stringify(body).includes(PROBE.said) ? begun : undefined));
  return provider;
}

describe('one doctor for many upstreams', () => {
  const open: { close(): unknown }[] = [];
  let openai: Provider;
  let diagnosis: Diagnosis;
  const found = (upstream: string): Readonly<Record<string, Finding>> => diagnosis.of(`upstream ${upstream}`);

  async function provider(plan?: Partial<Plan>, options?: ProviderOptions): Promise<Provider> {
    const started = await start(plan, options);
    open.push(started);
    return started;
  }

  async function server(listener: http.RequestListener): Promise<string> {
    const started = http.createServer(listener);
    await new Promise<void>((resolve) => started.listen(0, '127.0.0.1', resolve));
    open.push({
      close() {
        started.closeAllConnections();
        started.close();
      },
    });
    return `http://127.0.0.1:${(started.address() as AddressInfo).port}/v1`;
  }

  beforeAll(async () => {
    const directory = mkdtempSync(join(tmpdir(), 'holdfast-'));
    open.push({ close: () => rmSync(directory, { recursive: true }) });
    const authority = ({ ca = '' }: Provider) => {
      const path = join(directory, 'ca.pem');
      writeFileSync(path, ca);
      return path;
    };
    const healthy = await provider({ delay_ms: 50 }, { protocol: 'h2' });
    const old = await provider({}, { protocol: 'https1' });
    openai = await provider();
    diagnosis = await diagnose({
      upstreams: {
        healthy: { base_url: healthy.url, ca_file: authority(healthy), api_key: KEY },
        nowhere: { base_url: 'https://llm.invalid/v1' },
        closed: { base_url: 'http://127.0.0.1:9/v1' },
        distrusted: { base_url: (await provider({}, { protocol: 'h2' })).url },
        plain: { base_url: openai.url.replace('http:', 'https:') },
        old: { base_url: old.url, ca_file: authority(old) },
        refusing: { base_url: await server(refuseAndQuote), api_key: KEY },
        native: { base_url: await server(wantsXApiKey), api_key: KEY },
        mistaken: { base_url: await server(wantsXApiKey), api_key: 'sk-another' },
        restricted: {
          base_url: await server((_request, response) => void response.writeHead(403).end()),
          api_key: KEY,
        },
        keyless: { base_url: await server((_request, response) => void response.writeHead(401).end()) },
        buffered: { base_url: await server(holdingBack(await provider({ delay_ms: 10 }))) },
        page: { base_url: await server(signIn) },
        silent: {
          base_url: (await provider({ faults: [{ kind: 'silence', at: { event: 2 } }] })).url,
          clocks: { idle_ms: 500 },
        },
        belated: { base_url: await server(anHourAgo) },
        strict: { base_url: (await provider({ continuation: 'rejects_prefill' })).url },
        forgetful: { base_url: (await provider({ says: { prefill: () => COUNT } })).url },
        counting: {
          base_url: (await provider({ says: { prefill: () => 'five, six, seven, eight, nine' } })).url,
        },
        echoing: { base_url: (await provider({ prefilled: 'echo' })).url },
        misnamed: { base_url: (await provider({ continuation: 'rejects_prefill' })).url, dialect: 'vllm' },
        vllm: { base_url: (await provider({ prefill: 'vllm' })).url, dialect: 'vllm' },
        openai: { base_url: openai.url, dialect: 'openai' },
      },
      routes: [{ model: 'counter', targets: [{ upstream: 'page' }] }],
    });
  });
  afterAll(() => Promise.all(open.map((each) => each.close())));

  it('says nothing against one where all is well', () => {
    const { http: version, streaming, prefill, ...others } = found('healthy');
    expect(Object.keys(others)).toEqual(['tcp', 'tls', 'credentials', 'clock', 'buffering']);
    for (const each of Object.values(others)) expect(each).toMatchObject({ status: 'ok' });
    expect(version).toMatchObject({ status: 'ok', figures: { protocol: 'h2' } });
    expect(streaming).toMatchObject({
      status: 'ok',
      figures: { events: expect.any(Number), tokens: expect.any(Number) },
    });
    expect(prefill).toMatchObject({ status: 'ok', figures: { dialect: 'generic', result: 'native' } });
  });

  it.each([
    ['nowhere', 'dns', 'ENOTFOUND|EAI_AGAIN', 'base_url'],
    ['closed', 'tcp', 'ECONNREFUSED', 'base_url'],
    ['distrusted', 'tls', 'SELF_SIGNED', 'ca_file'],
    ['plain', 'tls', 'no secure connection', 'write http:'],
  ])('%s: cannot be reached, and is asked nothing more', (upstream, check, seen, remedy) => {
    const findings = Object.values(found(upstream));
    expect(findings.at(-1)).toMatchObject({
      name: check,
      status: 'fail',
      seen: expect.stringMatching(seen),
      remedy: expect.stringContaining(remedy),
    });
    expect(findings.filter(({ status }) => status === 'fail')).toHaveLength(1);
  });

  it('a host that speaks HTTP/1.1 only', () => {
    expect(found('old').http).toMatchObject({ status: 'warn', figures: { protocol: 'http/1.1' } });
    expect(found('old').streaming).toMatchObject({ status: 'ok' });
  });

  it('a key that is refused, by a provider that quotes it in part and in whole', () => {
    expect(found('refusing').credentials).toMatchObject({ status: 'ok' });
    expect(found('refusing').streaming).toMatchObject({
      status: 'fail',
      seen: `no complete answer from counter: unauthorised (status 401): Incorrect API key: Bearer ${'*'.repeat(KEY.length)}, that is [redacted]\u001b[31m***.`,
      remedy: 'check upstreams.refusing.api_key, and whether it may use counter.',
    });
    expect(diagnosis.output).not.toContain(KEY.slice(0, 9));
    expect(diagnosis.output).not.toContain('\u001b');
  });

  it('a key that is wanted in another header, and one that may not list models', () => {
    expect(found('native').credentials).toMatchObject({ status: 'ok' });
    expect(found('restricted').credentials).toMatchObject({ status: 'warn', figures: { status: 403 } });
    expect(found('restricted').streaming).toMatchObject({ status: 'skipped' });
    expect(found('mistaken').credentials).toMatchObject({
      status: 'fail',
      remedy: 'check upstreams.mistaken.api_key.',
    });
    expect(found('mistaken').streaming).toBeUndefined();
  });

  it('a key that is wanted and not configured', () => {
    const { credentials, streaming } = found('keyless');
    expect(credentials).toMatchObject({
      status: 'skipped',
      remedy: expect.stringContaining('HOLDFAST_API_KEY'),
    });
    expect(streaming).toBeUndefined();
  });

  it('a proxy that holds the stream back', () => {
    expect(found('buffered').buffering).toMatchObject({
      status: 'warn',
      remedy: expect.stringContaining('proxy_buffering'),
    });
  });

  it('a page in place of an API', () => {
    expect(found('page').credentials).toMatchObject({ status: 'skipped' });
    expect(found('page').streaming).toMatchObject({
      status: 'fail',
      seen: expect.stringContaining('text/html'),
    });
  });

  it('one that falls silent does not hold the doctor up', () => {
    expect(found('silent').streaming).toMatchObject({
      status: 'fail',
      seen: expect.stringContaining('idle_stall'),
    });
  });

  it('a clock that is wrong, and no model that could be asked', () => {
    const { clock, streaming } = found('belated');
    expect(clock).toMatchObject({ status: 'warn', remedy: expect.stringContaining('Retry-After') });
    expect(Number(clock?.figures?.skew_ms)).toBeLessThan(-3_000_000);
    expect(streaming).toMatchObject({ status: 'skipped', remedy: expect.stringContaining('--model') });
  });

  it.each([
    ['strict', 'ok', 'refused', 'generic'],
    ['forgetful', 'ok', "doesn't continue the prefix", 'generic'],
    ['counting', 'ok', "doesn't continue the prefix", 'generic'],
    ['misnamed', 'warn', 'refused', 'vllm'],
  ])('%s: a model that does not continue from a prefix', (upstream, status, seen, dialect) => {
    const figures = { dialect, result: 'nudge' };
    expect(found(upstream).prefill).toMatchObject({ status, seen: expect.stringContaining(seen), figures });
  });

  it('a model that says the prefix again first continues it all the same', () => {
    expect(found('echoing').prefill).toMatchObject({ figures: { result: 'native' } });
  });

  it('a prefix is sent in the form of the dialect, and not where the dialect has none', () => {
    expect(found('vllm').prefill).toMatchObject({ figures: { dialect: 'vllm', result: 'native' } });
    expect(found('openai').prefill).toMatchObject({ figures: { dialect: 'openai', result: 'nudge' } });
    expect(openai.requests.filter(({ method }) => method === 'POST')).toHaveLength(1);
  });

  it('fails as a whole', () => {
    expect(diagnosis.status).toBe(1);
  });
});

async function provided(plan?: Partial<Plan>): Promise<Provider> {
  const started = await start(plan);
  onTestFinished(() => started.close());
  return started;
}

const single = (base_url: string) => ({ upstreams: { main: { base_url } } });

it('tries the key of a client where none is configured', async () => {
  const root = await startPeer((request, response) => {
    response.writeHead(request.headers.authorization === `Bearer ${KEY}` ? 200 : 401);
    response.end('{"data":[]}');
  });
  const right = await diagnose(single(`${root}/v1`), [], { HOLDFAST_API_KEY: KEY });
  expect(right.of('upstream main').credentials).toMatchObject({ status: 'ok' });
  expect(right.status).toBe(0);
  expect(right.output).not.toContain(KEY);
  const file = join(temporaryDirectory(), 'key');
  writeFileSync(file, 'sk-another\n');
  const wrong = await diagnose(single(`${root}/v1`), ['--key-file', file], { HOLDFAST_API_KEY: KEY });
  expect(wrong.of('upstream main').credentials).toMatchObject({ status: 'fail' });
  expect(wrong.status).toBe(1);
});

it('shows the key of a client to no other provider than the one it is for', async () => {
  const seen: Record<string, string[]> = { one: [], other: [] };
  const peer = (name: string) =>
    startPeer(({ headers }, response) => {
      if (headers.authorization !== undefined) seen[name]?.push(headers.authorization);
      response.writeHead(headers.authorization === undefined ? 401 : 200).end('{"data":[]}');
    });
  const [one, other] = await Promise.all([peer('one'), peer('other')]);
  const tree = {
    upstreams: { one: { base_url: `${one}/v1` }, other: { base_url: `${other}/v1` } },
    routes: [
      { model: 'a', targets: [{ upstream: 'one' }] },
      { model: 'b', targets: [{ upstream: 'other' }] },
    ],
  };
  const untold = await diagnose(tree, [], { HOLDFAST_API_KEY: KEY });
  expect(untold.of('upstream one').credentials).toMatchObject({
    status: 'skipped',
    remedy: expect.stringContaining('--model'),
  });
  expect(seen).toEqual({ one: [], other: [] });
  await diagnose(tree, ['--model', 'b', '--no-requests'], { HOLDFAST_API_KEY: KEY });
  expect(seen).toEqual({ one: [], other: [`Bearer ${KEY}`] });
});

it('asks for the configured model, which the provider may not have', async () => {
  const { url } = await provided();
  const { status, of } = await diagnose(single(url), ['--model', 'countre']);
  expect(of('upstream main').streaming).toMatchObject({
    status: 'fail',
    seen: expect.stringContaining('model_not_found'),
    remedy: expect.stringContaining('Did you mean "counter"?'),
  });
  expect(status).toBe(1);
});

it('--no-requests asks nothing that costs tokens', async () => {
  const { url, requests } = await provided();
  const { status, of } = await diagnose(single(url), ['--no-requests']);
  expect(of('upstream main').streaming).toMatchObject({ status: 'skipped' });
  expect(requests.map(({ method, path }) => `${method} ${path}`)).toEqual(['GET /v1/models']);
  expect(status).toBe(0);
});

const refuseAndQuote: http.RequestListener = ({ headers: { authorization = '' }, url }, response) => {
  if (url === '/v1/models') return void response.writeHead(200).end('{"data":[{"id":"counter"}]}');
  const message = `Incorrect API key: ${authorization}, that is ${authorization.slice(7, 20)}\u001b[31m***.`;
  response.writeHead(401, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ error: { message, code: 'invalid_api_key' } }));
};

const wantsXApiKey: http.RequestListener = ({ headers }, response) => {
  const isRight = headers['x-api-key'] === KEY && headers['anthropic-version'] !== undefined;
  response.writeHead(isRight ? 200 : 401).end('{"data":[]}');
};

/** Buffers an answer completely before it passes anything on. */
const holdingBack =
  ({ port }: Provider): http.RequestListener =>
  (request, response) => {
    const options = { port, path: request.url ?? '', method: request.method ?? '', headers: request.headers };
    const inner = http.request(options, async (answer) => {
      const whole = await buffer(answer);
      response.writeHead(answer.statusCode ?? 502, answer.headers).end(whole);
    });
    request.pipe(inner);
  };

const signIn: http.RequestListener = (_request, response) =>
  void response.writeHead(200, { 'content-type': 'text/html' }).end('<title>Sign in</title>');

const anHourAgo: http.RequestListener = (_request, response) => {
  const date = new Date(Date.now() - 3_600_000).toUTCString();
  response.writeHead(200, { date }).end('{"data":[]}');
};

describe('keys and connections', () => {
  it('are those that serve would use: a key that a command prints, and a proxy, whose password is not printed', async () => {
    const provider = await start();
    const proxy = await ConnectProxy.start();
    const main = {
      base_url: provider.url,
      proxy: `http://user:a-long-password@${proxy.host}`,
      api_key_command: [process.execPath, '-e', `console.log('${KEY}')`],
    };
    const { status, output, of } = await diagnose({ upstreams: { main } }, ['--model', 'counter']);
    expect(status).toBe(0);
    expect(of('upstream main')).toMatchObject({
      tcp: { status: 'skipped', seen: `not tested: the proxy at ${proxy.host} makes the connections` },
      credentials: { status: 'ok' },
      streaming: { status: 'ok' },
    });
    expect(proxy.asked.length).toBeGreaterThan(1);
    expect(output).not.toMatch(new RegExp(`${KEY}|long-password`));
    await provider.close();
  });
});
