import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { chunksOf, contentOf } from './reading.ts';

const MAIN = join(import.meta.dirname, 'main.ts');
const SCENARIO = {
  scripts: { m: { parts: [{ text: 'Hello.' }], faults: [{ kind: 'clean_eof', at: { event: 1 } }] } },
};

let directory: string;
let child: ChildProcess;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'provider-test-'));
  writeFileSync(join(directory, 'scenario.json'), JSON.stringify(SCENARIO));
});
afterEach(async () => {
  if (child.exitCode === null && child.kill()) await once(child, 'exit');
  rmSync(directory, { recursive: true });
});

async function start(...options: string[]): Promise<{ url: string; ca_file?: string }> {
  child = spawn(process.execPath, [MAIN, '--scenario', join(directory, 'scenario.json'), ...options], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (!child.stdout) throw new Error('the provider has no standard output');
  const [line] = await once(createInterface(child.stdout), 'line');
  return JSON.parse(line as string) as { url: string; ca_file?: string };
}

const REQUEST = JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] });

test('says where it listens, follows the scenario, and ends on a signal', async () => {
  const { url, ca_file } = await start();
  expect(ca_file).toBeUndefined();
  const ask = async () =>
    contentOf(
      chunksOf(await (await fetch(`${url}/chat/completions`, { method: 'POST', body: REQUEST })).text()),
    );
  expect([await ask(), await ask()]).toEqual(['', 'Hello.']);
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

test('leaves the certificate in a file that goes with it', async () => {
  const { url, ca_file = '' } = await start('--protocol', 'h2');
  const request = https.request(`${url}/models`, { ca: readFileSync(ca_file) }).end();
  const [response] = await once(request, 'response');
  expect(await text(response)).toContain('"id":"m"');
  child.kill('SIGTERM');
  await once(child, 'exit');
  expect(() => readFileSync(ca_file)).toThrow('ENOENT');
});
