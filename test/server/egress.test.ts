import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { completeConfiguration, readConnections } from '../../src/config/load.ts';
import { relay } from '../../src/proxy/run/relay.ts';
import { chunkEvent, startProvider } from '../http-peer.ts';
import { certificate } from '../provider/certificate.ts';
import { ConnectProxy } from '../proxy/connect-proxy.ts';
import { startReplica } from '../replica.ts';

const { cert, key } = await certificate();
const BEGUN = 'Kelp holds fast ';
const WHOLE = `${BEGUN}to rock.`;
const DATA = { 'content-type': 'text/event-stream' };

interface Seen {
  readonly version: string;
  /** The common name of the client's certificate. */
  readonly client: unknown;
}

type SecureOptions = Pick<http2.SecureServerOptions, 'requestCert' | 'ca'>;

/** A TLS provider whose first answer stays open after its beginning, until `onBegun` ends the connection. */
async function startSecure(onBegun: () => void = () => {}, options: SecureOptions = {}, version = 2) {
  const seen: Seen[] = [];
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const socket = request.socket as TLSSocket;
    seen.push({ version: request.httpVersion, client: socket.getPeerCertificate().subject?.CN });
    request.resume();
    response.writeHead(200, DATA);
    response.write(chunkEvent({ role: 'assistant', content: seen.length === 1 ? BEGUN : WHOLE }));
    if (seen.length === 1) setTimeout(onBegun, 50);
    else response.end(`${chunkEvent({}, 'stop')}data: [DONE]\n\n`);
  };
  const secure = { cert, key, ...options };
  // The HTTP/2 compatibility API has everything that the listener uses.
  const server = version === 2 ? http2.createSecureServer(secure) : https.createServer(secure);
  server.on('request', listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { base_url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, seen };
}

/** Writes these files, and returns their paths. */
function files<Name extends string>(contents: Readonly<Record<Name, string>>): Record<Name, string> {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-egress-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  for (const [name, content] of Object.entries<string>(contents))
    writeFileSync(join(directory, name), content);
  return Object.fromEntries(Object.keys(contents).map((name) => [name, join(directory, name)])) as Record<
    Name,
    string
  >;
}

const secured = () => ({ ca_file: files({ ca: cert }).ca });
const RECOVERY = { backoff_ms: 1, no_progress_ms: 5000 };

async function ask(upstream: object, clocks = {}) {
  const { api, log } = await startReplica(
    { upstreams: { main: upstream }, recovery: RECOVERY, clocks },
    relay,
  );
  const response = await fetch(`${api}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'Tell me.' }] }),
  });
  return { api, status: response.status, body: await response.text(), log };
}

const saidIn = (body: string) =>
  Array.from(body.matchAll(/"content":"([^"]*)"/g), ([, said]) => said).join('');

describe('an upstream behind a proxy', () => {
  it.each([1, 2])(
    'is asked by a tunnel, in HTTP/%i; a tunnel that breaks is an interruption',
    async (version) => {
      const proxy = await ConnectProxy.start();
      const { base_url, seen } = await startSecure(() => proxy.cut(), {}, version);
      const { body } = await ask({ base_url, proxy: proxy.url, ...secured() });
      expect(saidIn(body)).toBe(WHOLE);
      expect(body).toContain('[DONE]');
      expect(seen).toHaveLength(2);
      expect(new Set(seen.map((one) => one.version))).toEqual(new Set([version === 2 ? '2.0' : '1.1']));
      const tunnel = { method: 'CONNECT', target: new URL(base_url).host, authorization: undefined };
      expect(proxy.asked).toEqual([tunnel, tunnel]);
    },
  );

  it('is asked with the password of the proxy, which is printed nowhere', async () => {
    const proxy = await ConnectProxy.start();
    const { base_url } = await startSecure(() => proxy.cut());
    const { body, log } = await ask({
      base_url,
      proxy: `http://user:pass%40word@${proxy.host}`,
      ...secured(),
    });
    expect(saidIn(body)).toBe(WHOLE);
    const credential = Buffer.from('user:pass@word').toString('base64');
    expect(proxy.asked[0]?.authorization).toBe(`Basic ${credential}`);
    expect(await log()).not.toMatch(new RegExp(`word|${credential}`));
  });

  it.each([403, 407, 502])('that answers %i is not reached, and the error says so', async (status) => {
    const proxy = await ConnectProxy.start();
    proxy.refusal = status;
    const { base_url, seen } = await startSecure();
    const answer = await ask({ base_url, proxy: proxy.url, ...secured() });
    expect(answer.status).toBe(502);
    expect(answer.body).toContain('PROXY_REFUSED');
    expect(seen).toEqual([]);
  });

  it('that does not answer is given up after connect_ms', async () => {
    const proxy = await ConnectProxy.start();
    proxy.refusal = 0;
    const { base_url } = await startSecure();
    const began_ms = performance.now();
    const answer = await ask({ base_url, proxy: proxy.url, ...secured() }, { connect_ms: 200 });
    expect(answer.status).toBeGreaterThanOrEqual(502);
    expect(performance.now() - began_ms).toBeGreaterThan(200);
    expect(proxy.asked.length).toBeGreaterThan(0);
  });

  it('that is not there is an upstream that cannot be reached', async () => {
    const { base_url } = await startSecure();
    const answer = await ask({ base_url, proxy: 'http://127.0.0.1:9', ...secured() });
    expect(answer.status).toBe(502);
    expect(answer.body).toContain('ECONNREFUSED');
  });

  it('is asked by the proxy itself where it has no TLS, and what is passed through is, too', async () => {
    const proxy = await ConnectProxy.start();
    const provider = await startProvider((request, response) => {
      request.resume();
      response.end(`{"path":"${request.url}"}`);
    });
    const { api } = await startReplica({
      upstreams: { main: { base_url: `${provider}/v1`, proxy: proxy.url } },
    });
    const response = await fetch(`${api}/v1/models?limit=1`);
    expect(await response.json()).toEqual({ path: '/v1/models?limit=1' });
    expect(proxy.asked).toMatchObject([{ method: 'GET', target: `${provider}/v1/models?limit=1` }]);
  });
});

describe('proxies of the environment', () => {
  const answerOf = async (host: string, environment: Readonly<Record<string, string>>) => {
    const proxy = await ConnectProxy.start();
    const provider = await startProvider((_, response) => response.end('{}'));
    for (const name of ['http_proxy', 'https_proxy', 'HTTPS_PROXY', 'no_proxy', 'NO_PROXY'])
      vi.stubEnv(name, undefined);
    vi.stubEnv('HTTP_PROXY', proxy.url);
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
    onTestFinished(() => void vi.unstubAllEnvs());
    const base_url = `http://${host}:${new URL(provider).port}/v1`;
    const { api } = await startReplica({ upstreams: { main: { base_url } } });
    const { status } = await fetch(`${api}/v1/models`);
    return { status, proxied: proxy.asked.length };
  };

  it('are asked', async () => {
    expect(await answerOf('llm.invalid', {})).toEqual({ status: 200, proxied: 1 });
  });

  it('are not asked for what NO_PROXY names', async () => {
    expect(await answerOf('llm.invalid', { NO_PROXY: '.invalid' })).toEqual({ status: 502, proxied: 0 });
  });

  it.each(['127.0.0.1', 'localhost'])('are not asked for %s', async (host) => {
    expect(await answerOf(host, {})).toEqual({ status: 200, proxied: 0 });
  });
});

describe('a client certificate', () => {
  const certified = () => {
    const { ca, client, key: own } = files({ ca: cert, client: cert, key });
    return { ca_file: ca, client_cert_file: client, client_key_file: own };
  };

  it.each(['directly', 'by a proxy'])('is shown %s', async (way) => {
    const proxy = await ConnectProxy.start();
    const { base_url, seen } = await startSecure(undefined, { requestCert: true, ca: cert });
    seen.push({ version: '', client: '' });
    const { body } = await ask({
      base_url,
      ...certified(),
      ...(way === 'by a proxy' && { proxy: proxy.url }),
    });
    expect(saidIn(body)).toBe(WHOLE);
    expect(seen.at(-1)).toEqual({ version: '2.0', client: 'localhost' });
    expect(proxy.asked).toHaveLength(way === 'by a proxy' ? 1 : 0);
  });

  it('that the server wants and does not get is an upstream that cannot be reached', async () => {
    const { base_url } = await startSecure(undefined, { requestCert: true, ca: cert });
    const { status, body } = await ask({ base_url, ...secured() });
    expect(status).toBe(502);
    expect(body).toContain('upstream');
  });
});

describe('settings of connections that cannot be used', () => {
  const BASE = { base_url: 'https://llm.example.com/v1' };
  const faultOf = (upstreams: object) => {
    try {
      readConnections(completeConfiguration({ upstreams }));
    } catch (error) {
      return (error as Error).message;
    }
    return undefined;
  };

  it.each([
    [
      { proxy: 'proxy:3128' },
      'upstreams.main.proxy: must be an http: or https: URL, like http://proxy.example.com:3128.',
    ],
    [
      { proxy: 'socks5://proxy:1080' },
      'upstreams.main.proxy: must be an http: or https: URL, like http://proxy.example.com:3128.',
    ],
    [{ proxy: 'http://proxy:3128/path' }, 'upstreams.main.proxy: must have nothing after its port.'],
    [
      { client_cert_file: 'x' },
      'upstreams.main.client_cert_file: goes together with client_key_file; set that, too.',
    ],
    [
      { client_key_file: 'x' },
      'upstreams.main.client_cert_file: goes together with client_key_file; set this, too.',
    ],
    [
      { client_cert_file: '/none', client_key_file: '/none' },
      expect.stringContaining('upstreams.main.client_key_file: /none cannot be read (ENOENT).'),
    ],
  ])('%j', (settings, fault) => {
    expect(faultOf({ main: { ...BASE, ...settings } })).toEqual(fault);
  });

  it('are files that are no PEM, or do not go together', async () => {
    const { text, client, key: own } = files({ text: 'no PEM', client: cert, key });
    const other = files({ key: await otherKey() }).key;
    for (const pair of [
      { client_cert_file: text, client_key_file: own },
      { client_cert_file: client, client_key_file: text },
      { client_cert_file: client, client_key_file: other },
    ])
      expect(faultOf({ main: { ...BASE, ...pair } })).toMatch(
        /^upstreams\.main: client_cert_file, client_key_file: is not PEM, or does not go with the others \(ERR_/,
      );
  });

  it('differ between upstreams of one address, which share connections', () => {
    const twice = {
      main: BASE,
      other: { base_url: 'https://llm.example.com/v2', proxy: 'http://proxy:3128' },
    };
    expect(faultOf(twice)).toBe(
      'upstreams.other.proxy: differs from that of upstreams.main, which has the same address; make them the same.',
    );
  });
});

async function otherKey(): Promise<string> {
  const { generateKeyPairSync } = await import('node:crypto');
  return generateKeyPairSync('ec', { namedCurve: 'P-256' })
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString();
}
