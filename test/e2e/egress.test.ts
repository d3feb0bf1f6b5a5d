import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import net, { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI from 'openai';
import { expect, onTestFinished, test } from 'vitest';
import { debianProgram } from '../debian-program.ts';
import { chunkEvent } from '../http-peer.ts';
import { needs } from '../needs.ts';
import { certificate } from '../provider/certificate.ts';
import { freePort } from '../redis/free-port.ts';
import { HoldfastProcess } from './holdfast-process.ts';

const tinyproxy = await debianProgram('tinyproxy');
const WORDS = 'Kelp holds fast to rock and grows where the water is cold and clear'.split(' ');
const WORD_MS = 50;

/**
 * A TLS provider that sends one word at a time. It answers every request from the first word on, even a request for the
 * rest.
 */
async function startSlow() {
  const { cert, key } = await certificate();
  let requests = 0;
  const server = https.createServer({ cert, key }, async (request, response) => {
    requests++;
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const word of WORDS) {
      response.write(chunkEvent({ role: 'assistant', content: `${word} ` }));
      await sleep(WORD_MS);
    }
    response.end(`${chunkEvent({}, 'stop')}data: [DONE]\n\n`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    base_url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    cert,
    requests: () => requests,
  };
}

/** tinyproxy with a password, always on the same port. */
class Tinyproxy {
  readonly port: number;
  readonly #path: string;
  readonly #configuration: string;
  #process: ChildProcess | undefined;

  constructor(path: string, port: number) {
    this.#path = path;
    this.port = port;
    const directory = mkdtempSync(join(tmpdir(), 'holdfast-tinyproxy-'));
    this.#configuration = join(directory, 'tinyproxy.conf');
    const settings = [
      `Port ${port}`,
      'Listen 127.0.0.1',
      'Allow 127.0.0.1',
      'BasicAuth user word',
      'Timeout 60',
    ];
    writeFileSync(this.#configuration, `${settings.join('\n')}\n`);
    onTestFinished(async () => {
      await this.kill();
      rmSync(directory, { recursive: true });
    });
  }

  async start(): Promise<void> {
    this.#process = spawn(this.#path, ['-d', '-c', this.#configuration], { stdio: 'ignore' });
    for (;;) {
      const socket = net.connect(this.port, '127.0.0.1');
      const isUp = await once(socket, 'connect').then(
        () => true,
        () => false,
      );
      socket.destroy();
      if (isUp) return;
      await sleep(20);
    }
  }

  async kill(): Promise<void> {
    const process = this.#process;
    if (!process || process.exitCode !== null || process.signalCode !== null) return;
    process.kill('SIGKILL');
    await once(process, 'exit');
  }
}

async function start(password: string) {
  const provider = await startSlow();
  const proxy = new Tinyproxy('path' in tinyproxy ? tinyproxy.path : '', await freePort());
  await proxy.start();
  const holdfast = await HoldfastProcess.start(
    {
      upstreams: {
        main: {
          base_url: provider.base_url,
          ca_file: 'ca.pem',
          api_key: 'key of the operator',
          proxy: `http://user:${password}@127.0.0.1:${proxy.port}`,
        },
      },
      recovery: { backoff_ms: 100 },
    },
    { 'ca.pem': provider.cert },
  );
  onTestFinished(() => holdfast.close());
  const client = new OpenAI({ baseURL: holdfast.url, apiKey: 'of-the-client', maxRetries: 0 });
  return { provider, proxy, holdfast, client };
}

const ASKED = { model: 'm', messages: [{ role: 'user' as const, content: 'Tell me of kelp.' }] };

test('a real proxy that is killed twice in the middle of an answer is not noticed', {
  ...needs(tinyproxy),
  timeout: 60_000,
}, async () => {
  const { provider, proxy, holdfast, client } = await start('word');
  const stream = await client.chat.completions.create({ ...ASKED, stream: true });
  let said = '';
  let words = 0;
  for await (const { choices } of stream) {
    said += choices[0]?.delta.content ?? '';
    words++;
    if (words !== 4 && words !== 8) continue;
    await proxy.kill();
    await proxy.start();
  }
  expect(said).toBe(`${WORDS.join(' ')} `);
  expect(provider.requests()).toBeGreaterThanOrEqual(3);
  expect(JSON.stringify(holdfast.log)).not.toMatch(/word@|dXNlcjp3b3Jk/);
});

test('a real proxy that refuses the password says so to the client', {
  ...needs(tinyproxy),
  timeout: 60_000,
}, async () => {
  const { provider, client } = await start('wrong');
  await expect(client.chat.completions.create({ ...ASKED, stream: true })).rejects.toThrow(/PROXY_REFUSED/);
  expect(provider.requests()).toBe(0);
});
