import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { completeConfiguration } from '../../../src/config/load.ts';
import type { Time } from '../../../src/lib/time.ts';
import { UpstreamKeys } from '../../../src/proxy/upstream/upstream-keys.ts';

/** Time that passes only when its one timer is fired, because files and commands take real time. */
class NextTimer implements Time {
  #next: { readonly delay_ms: number; readonly callback: () => void } | undefined;
  #now_ms = 0;

  now = () => this.#now_ms;
  wall = () => 1_700_000_000_000 + this.#now_ms;

  after(delay_ms: number, callback: () => void): () => void {
    expect(this.#next).toBeUndefined();
    this.#next = { delay_ms, callback };
    return () => {
      this.#next = undefined;
    };
  }

  fire(): number {
    const { delay_ms = Number.NaN, callback } = this.#next ?? {};
    this.#next = undefined;
    this.#now_ms += delay_ms;
    callback?.();
    return delay_ms;
  }
}

/** The keys of an upstream on virtual time. `content`: what the file at `path` contains at first. */
async function open(upstream: (path: string) => object, content?: string) {
  const directory = await mkdtemp(join(tmpdir(), 'holdfast-keys-'));
  const path = join(directory, 'key');
  const write = (text: string) => writeFile(path, text);
  if (content !== undefined) await write(content);
  const time = new NextTimer();
  let onRenewal = (_fault: string | undefined) => {};
  const configuration = completeConfiguration({
    upstreams: { main: { base_url: 'https://llm.example.com/v1', ...upstream(path) } },
  });
  onTestFinished(() => rm(directory, { recursive: true }));
  const keys = await UpstreamKeys.open(configuration, { time, onRenewal: (_, fault) => onRenewal(fault) });
  onTestFinished(() => keys.close());
  /** Fires the timer of the renewal. Resolves with the delay of that timer, and with the fault, if there was one. */
  const renewed = async () => {
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    onRenewal = resolve;
    const after_ms = time.fire();
    return { after_ms, fault: await promise };
  };
  return { write, path, renewed, key: () => keys.configuration.upstreams.main?.api_key };
}

const print = (text: string) => () => ({
  api_key_command: [process.execPath, '-e', `process.stdout.write(${JSON.stringify(text)})`],
});
const printFile = (path: string) => ({ api_key_command: ['cat', path] });
const inFile = (path: string) => ({ api_key_file: path });
const token = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`;

describe('a key in a file', () => {
  it('is what the file has, without the line break at its end', async () => {
    const { key } = await open(inFile, 'sk-first\n');
    expect(key()).toBe('sk-first');
  });

  it('is another one ten seconds after the file has another', async () => {
    const { key, write, renewed } = await open(inFile, 'sk-first');
    await write('sk-second');
    expect(await renewed()).toEqual({ after_ms: 10_000, fault: undefined });
    expect(key()).toBe('sk-second');
  });

  it.each([
    ['is empty', '\n', 'returned no key, only white space.'],
    ['has two lines', 'sk-1\nsk-2', expect.stringContaining('something other than a key')],
    ['has no text', 'sk-\u0000', expect.stringContaining('something other than a key')],
  ])('stays while the file %s', async (_, content, fault) => {
    const { key, write, renewed } = await open(inFile, 'sk-first');
    await write(content);
    expect(await renewed()).toEqual({ after_ms: 10_000, fault });
    expect(key()).toBe('sk-first');
    await write('sk-second');
    expect(await renewed()).toEqual({ after_ms: 10_000, fault: undefined });
    expect(key()).toBe('sk-second');
  });

  it('has to be there at the start', async () => {
    await expect(open(inFile)).rejects.toThrow(
      /^upstreams\.main\.api_key_file: .* cannot be read \(ENOENT\)/,
    );
  });
});

describe('a key that a command prints', () => {
  it.each([
    ['as it is', 'sk-printed\n', 300_000],
    ['with the seconds that it is good for', '{"access_token":"sk-printed","expires_in":3600}', 3_300_000],
    ['good for a short time', '{"access_token":"sk-printed","expires_in":"60"}', 30_000],
    [
      'with its end, as the CLI of Azure has it',
      '{"accessToken":"sk-printed","expires_on":1700003600}',
      3_300_000,
    ],
    ['that has expired', '{"accessToken":"sk-printed","expires_on":1600000000}', 10_000],
    ['for ever', '{"access_token":"sk-printed","expires_in":1e12}', 3_600_000],
    ['without an end', '{"access_token":"sk-printed","expires_on":"tomorrow"}', 300_000],
  ])('%s is renewed in time', async (_, printed, after_ms) => {
    const { key, renewed } = await open(print(printed));
    expect(key()).toBe('sk-printed');
    expect(await renewed()).toEqual({ after_ms, fault: undefined });
  });

  it('may be a JSON Web Token, which says itself when it ends', async () => {
    const jwt = token({ exp: 1_700_001_000 });
    const { key, renewed } = await open(printFile, jwt);
    expect(key()).toBe(jwt);
    expect(await renewed()).toEqual({ after_ms: 700_000, fault: undefined });
  });

  it.each(['a.b.c', token([]), token({ exp: 'x' })])('may look like one: %s', async (odd) => {
    const { key, renewed } = await open(printFile, odd);
    expect(key()).toBe(odd);
    expect(await renewed()).toEqual({ after_ms: 300_000, fault: undefined });
  });

  it('stays while the command fails, which is tried again every ten seconds', async () => {
    const { key, path, write, renewed } = await open(printFile, 'sk-first');
    await rm(path);
    const fault = 'cat has ended with 1; run it by hand to see why.';
    expect(await renewed()).toEqual({ after_ms: 300_000, fault });
    expect(await renewed()).toEqual({ after_ms: 10_000, fault });
    expect(key()).toBe('sk-first');
    await write('sk-second');
    expect(await renewed()).toEqual({ after_ms: 10_000, fault: undefined });
    expect(key()).toBe('sk-second');
  });

  const node = (source: string) => () => ({ api_key_command: [process.execPath, '-e', source] });
  it.each([
    [
      'is not there',
      () => ({ api_key_command: ['/no/such/program'] }),
      /api_key_command: \/no\/such\/program cannot be run \(ENOENT\)/,
    ],
    [
      'prints too much',
      node("process.stdout.write('sk-secret'.repeat(100_000))"),
      /printed more than 65536 bytes/,
    ],
    ['prints nothing', node(''), /returned no key/],
    [
      'prints JSON of another kind',
      node('console.log(\'{"token":"sk-secret"}\')'),
      /without an access_token/,
    ],
    [
      'prints JSON that is cut',
      node('console.log(\'{"access_token":"sk-secret\')'),
      /incomplete or malformed/,
    ],
    [
      'ends with an error that quotes the key',
      node("console.error('sk-secret'); process.exit(3)"),
      /has ended with 3/,
    ],
    ['kills itself', node("process.kill(process.pid, 'SIGTERM')"), /was ended by SIGTERM/],
  ])('has to be there at the start: a command that %s', async (_, upstream, message) => {
    const error = await open(upstream).catch(({ message }) => message);
    expect(error).toMatch(message);
    expect(error).not.toContain('secret');
  });
});

it('a key has one source', () => {
  const faultsOf = (upstream: object) => {
    try {
      completeConfiguration({ upstreams: { main: { base_url: 'https://llm.example.com/v1', ...upstream } } });
    } catch (error) {
      return (error as Error).message;
    }
    return undefined;
  };
  expect(faultsOf({ api_key: 'a', api_key_file: 'b' })).toBe(
    'upstreams.main.api_key: is set beside api_key_file; keep one of the two.',
  );
  expect(faultsOf({ api_key_command: ['a'], api_key_file: 'b' })).toBe(
    'upstreams.main.api_key_command: is set beside api_key_file; keep one of the two.',
  );
  expect(faultsOf({ api_key_file: 'b', headers: { 'api-key': 'x' } })).toBe(
    'upstreams.main.headers.api-key: is a credential beside api_key_file; keep one of the two.',
  );
  expect(faultsOf({ api_key_command: [] })).toContain('upstreams.main.api_key_command');
});
