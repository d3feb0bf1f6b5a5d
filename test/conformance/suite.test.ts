import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { allCases, type Case } from '../../packages/conformance/src/cases.ts';
import { isAcceptable } from '../../packages/conformance/src/judge.ts';
import { Provider } from '../../packages/conformance/src/provider/provider.ts';
import { type Result, type Run, runCases } from '../../packages/conformance/src/run.ts';
import { temporaryDirectory } from '../cli-process.ts';
import { HoldfastProcess } from '../e2e/holdfast-process.ts';
import { certificate } from '../provider/certificate.ts';
import { freePort } from '../redis/free-port.ts';

const MAIN = fileURLToPath(new URL('../../packages/conformance/src/main.ts', import.meta.url));
const SEED = 5;
const SILENCE_MS = 9000;
const IDLE_MS = 7000;
/** The minimum that Holdfast allows. */
const KEEPALIVE_MS = 5000;
/** Longer than any pause of a working provider. */
const CLOCKS = { first_byte_ms: 12_000, first_token_ms: 12_000, idle_ms: 12_000 };
const HANG_MS = 60_000;
const LIMIT_MS = 240_000;
const SECRET = 'a secret for tests only, of both replicas';

async function startProvider(cases: readonly Case[], tls?: { readonly cert: string; readonly key: string }) {
  const options = { seed: SEED, host: '127.0.0.1', port: 0, silence_ms: SILENCE_MS } as const;
  const provider = await Provider.start({ cases, ...options, prefill: 'continues', tls });
  onTestFinished(() => provider.close());
  return provider;
}

async function startHoldfast(base_url: string, more: Record<string, unknown> = {}, files = {}) {
  const upstream = { base_url, ...(more.ca_file === undefined ? {} : { ca_file: more.ca_file }) };
  const holdfast = await HoldfastProcess.start(
    {
      upstreams: { main: upstream, backup: upstream },
      routes: [{ model: '*', targets: [{ upstream: 'main' }, { upstream: 'backup' }] }],
      clocks: CLOCKS,
      delivery: { keepalive_ms: KEEPALIVE_MS },
      ...(more.checkpoint === undefined ? {} : { checkpoint: more.checkpoint, secret: SECRET }),
    },
    files,
  );
  onTestFinished(() => holdfast.close());
  return holdfast;
}

const gatewayAt = ({ url }: HoldfastProcess): Run['gateway'] => ({
  root: url.replace(/\/v1$/, ''),
  api_key: 'sk-test',
  models: { chat: 'gpt-4o', messages: 'claude-haiku-4-5', responses: 'gpt-4o' },
  headers: { chat: {}, messages: {}, responses: {} },
});

const run = (cases: readonly Case[], provider: Provider, holdfast: HoldfastProcess, death?: Run['death']) =>
  runCases({
    cases,
    seed: SEED,
    provider,
    gateway: gatewayAt(holdfast),
    clocks: { hang_ms: HANG_MS, idle_ms: IDLE_MS },
    concurrency: 32,
    death,
  });

const misled = (results: readonly Result[]) =>
  results
    .filter(({ verdict }) => !isAcceptable(verdict))
    .map(({ asked, verdict }) => `${asked.id}: ${verdict}`);

const notExact = (results: readonly Result[]) =>
  results.filter(({ verdict }) => verdict !== 'exact').map(({ asked }) => asked);

describe('the conformance suite', { timeout: LIMIT_MS }, () => {
  test('finds nothing that misleads an application behind Holdfast, and that it saves what can be saved', async () => {
    const cases = allCases({ http2: false, kill: false });
    const provider = await startProvider(cases);
    const results = await run(cases, provider, await startHoldfast(`http://127.0.0.1:${provider.port}/v1`));
    expect(results).toHaveLength(cases.length);
    expect(misled(results)).toEqual([]);
    // If every attempt fails, nothing can be saved, and after a settled call Holdfast ends the turn.
    expect(notExact(results).filter(({ always, state }) => !always && state !== 'second_call')).toEqual([]);
  });

  test('has Holdfast survive GOAWAY', async () => {
    const cases = allCases({ http2: true, kill: false }).filter(({ trouble }) => trouble === 'goaway');
    const tls = await certificate();
    const provider = await startProvider(cases, tls);
    const files = { 'ca.pem': tls.cert };
    const holdfast = await startHoldfast(
      `https://127.0.0.1:${provider.port}/v1`,
      { ca_file: 'ca.pem' },
      files,
    );
    const results = await run(cases, provider, holdfast);
    expect(misled(results)).toEqual([]);
    expect(notExact(results).filter(({ state }) => state !== 'second_call')).toEqual([]);
    expect(holdfast.log.some(({ cause }) => cause === 'goaway')).toBe(true);
  });

  test('has an answer survive the replica that gave it, on another one', async () => {
    const cases = allCases({ http2: false, kill: true }).filter(({ trouble }) => trouble === 'replica_death');
    const provider = await startProvider(cases);
    const checkpoint = { store: `file:${temporaryDirectory()}` };
    const start = () => startHoldfast(`http://127.0.0.1:${provider.port}/v1`, { checkpoint });
    const [first, second] = [await start(), await start()];
    const death = { kill: () => first.kill('SIGKILL'), second: gatewayAt(second) };
    const results = await run(cases, provider, first, death);
    expect(results.map(({ asked, verdict }) => [asked.wire, verdict])).toEqual([
      ['chat', 'exact'],
      ['messages', 'exact'],
      ['responses', 'exact'],
    ]);
  });

  test('finds what the SDKs do not notice by themselves, twice the same', async () => {
    const directory = temporaryDirectory();
    const reports = await Promise.all(['first', 'second'].map((name) => direct(join(directory, name))));
    const [one, other] = reports.map(({ json }) => json);
    expect(other).toBe(one);
    expect(reports.map(({ status }) => status)).toEqual([1, 1]);
    const { verdicts, results } = JSON.parse(one ?? '');
    expect(verdicts).toEqual({
      exact: 18,
      honest_error: 69,
      silent_truncation: 6,
      wrong_end: 3,
      broken_tool_call: 6,
      hang: 18,
      idle_timeout: 6,
    });
    const verdictOf = (id: string) => results.find((result: { id: string }) => result.id === id)?.verdict;
    for (const wire of ['chat', 'messages', 'responses']) {
      expect(verdictOf(`${wire}/streaming/text/none`)).toBe('exact');
      expect(verdictOf(`${wire}/streaming/text/reset`)).toBe('honest_error');
      expect(verdictOf(`${wire}/streaming/text/clean_close`)).toBe('silent_truncation');
      expect(verdictOf(`${wire}/streaming/in_call/clean_close`)).toBe('broken_tool_call');
      expect(verdictOf(`${wire}/streaming/settled_call/clean_close`)).toBe('wrong_end');
      expect(verdictOf(`${wire}/streaming/text/stall`)).toBe('hang');
    }
  });
});

/** Runs the command with the provider itself as the gateway. */
async function direct(path: string) {
  const port = String(await freePort());
  const clocks = ['--hang-ms', '8000', '--silence-ms', '6000', '--idle-ms', '3000'];
  const words = [MAIN, '--base-url', `http://127.0.0.1:${port}/v1`, '--upstream-port', port, '--json', path];
  const suite = spawn(process.execPath, [...words, ...clocks], { stdio: 'ignore' });
  const [status] = await once(suite, 'exit');
  return { status, json: readFileSync(path, 'utf8') };
}
