import { type ExecFileException, execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import type { Configuration, UpstreamConfiguration } from '../../config/configuration.ts';
import { ConfigurationError, type Problem } from '../../config/problem.ts';
import { isObject, parsedJson } from '../../lib/json.ts';
import type { Time } from '../../lib/time.ts';

/** Limits for a key command: run time and output. */
const COMMAND_MS = 30_000;
const OUTPUT_BYTES = 65_536;
/** Interval for reading files, and for retries after a failure. */
const SHORTLY_MS = 10_000;
/** Interval for keys from commands without an expiry. */
const OFTEN_MS = 300_000;
/** How long before its expiry a key is renewed, or half its life if that is shorter. */
const EARLY_MS = 300_000;
/** Maximum interval, because clocks change and commands may be wrong. */
const SELDOM_MS = 3_600_000;

/** A key and its remaining life, if known. */
interface Key {
  readonly text: string;
  readonly life_ms?: number;
}

export interface UpstreamKeysOptions {
  readonly time: Time;
  /** Called after each renewal, with the fault if it failed. `fault` never contains part of the key. */
  readonly onRenewal: (upstream: string, fault: string | undefined) => void;
}

/**
 * The upstream keys that come from files or commands. They are renewed before they expire; if that fails, the old key
 * stays.
 */
export class UpstreamKeys {
  /** The configuration in which reading `api_key` of such an upstream returns its current key. */
  readonly configuration: Configuration;
  readonly #keys: readonly RenewedKey[];

  private constructor(configuration: Configuration, keys: readonly RenewedKey[]) {
    this.configuration = configuration;
    this.#keys = keys;
  }

  /** Resolves once every upstream has its key. Rejects with a {@link ConfigurationError} if one has none. */
  static async open(configuration: Configuration, options: UpstreamKeysOptions): Promise<UpstreamKeys> {
    const upstreams: Record<string, UpstreamConfiguration> = { ...configuration.upstreams };
    const keys: RenewedKey[] = [];
    for (const [name, upstream] of Object.entries(configuration.upstreams)) {
      const source = sourceOf(upstream);
      if (!source) continue;
      const key = new RenewedKey(name, source, options);
      keys.push(key);
      upstreams[name] = {
        ...upstream,
        get api_key() {
          return key.text;
        },
      };
    }
    const problems = (await Promise.all(keys.map((key) => key.begin()))).filter(
      (problem) => problem !== undefined,
    );
    const opened = new UpstreamKeys({ ...configuration, upstreams }, keys);
    if (problems.length === 0) return opened;
    opened.close();
    throw new ConfigurationError(problems);
  }

  /** Stops renewals. */
  close(): void {
    for (const key of this.#keys) key.end();
  }
}

/** The source of a key. `read` rejects with a {@link KeyFault}. */
interface KeySource {
  readonly setting: 'api_key_file' | 'api_key_command';
  /** Interval for reading it if the key doesn't state its life. */
  readonly every_ms: number;
  readonly read: (signal: AbortSignal) => Promise<string>;
}

function sourceOf({ api_key_file, api_key_command }: UpstreamConfiguration): KeySource | undefined {
  if (api_key_file !== undefined)
    return { setting: 'api_key_file', every_ms: SHORTLY_MS, read: () => contentOf(api_key_file) };
  const [program, ...operands] = api_key_command ?? [];
  if (program === undefined) return undefined;
  return {
    setting: 'api_key_command',
    every_ms: OFTEN_MS,
    read: (signal) => outputOf(program, operands, signal),
  };
}

class RenewedKey {
  readonly #upstream: string;
  readonly #source: KeySource;
  readonly #options: UpstreamKeysOptions;
  readonly #ended = new AbortController();
  #text = '';
  #cancelTimer: () => void = () => {};

  constructor(upstream: string, source: KeySource, options: UpstreamKeysOptions) {
    this.#upstream = upstream;
    this.#source = source;
    this.#options = options;
  }

  get text(): string {
    return this.#text;
  }

  /** Resolves with the problem if there is no key. */
  async begin(): Promise<Problem | undefined> {
    const fault = await this.#renew();
    if (fault === undefined) return undefined;
    return { path: `upstreams.${this.#upstream}.${this.#source.setting}`, message: fault };
  }

  end(): void {
    this.#ended.abort();
    this.#cancelTimer();
  }

  async #renew(): Promise<string | undefined> {
    const { time } = this.#options;
    const { every_ms, read } = this.#source;
    let wait_ms = SHORTLY_MS;
    let fault: string | undefined;
    try {
      const { text, life_ms } = keyIn(await read(this.#ended.signal), time.wall());
      this.#text = text;
      wait_ms = life_ms === undefined ? every_ms : life_ms - Math.min(EARLY_MS, life_ms / 2);
    } catch (error) {
      if (!(error instanceof KeyFault)) throw error;
      fault = error.message;
    }
    if (this.#ended.signal.aborted) return fault;
    const bounded_ms = Math.min(Math.max(wait_ms, SHORTLY_MS), SELDOM_MS);
    this.#cancelTimer = time.after(bounded_ms, () => void this.#renewAgain());
    return fault;
  }

  async #renewAgain(): Promise<void> {
    const fault = await this.#renew();
    if (!this.#ended.signal.aborted) this.#options.onRenewal(this.#upstream, fault);
  }
}

/** Why there is no key. Never contains part of the key. */
class KeyFault extends Error {
  override readonly name = 'KeyFault';
}

async function contentOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new KeyFault(`${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

/** The command's standard output. Its error output is ignored, because it may quote the key. */
function outputOf(program: string, operands: readonly string[], signal: AbortSignal): Promise<string> {
  const limits = { timeout: COMMAND_MS, maxBuffer: OUTPUT_BYTES, killSignal: 'SIGKILL', signal } as const;
  return new Promise((resolve, reject) => {
    execFile(program, operands, { ...limits, encoding: 'utf8' }, (error, output) => {
      if (error) reject(new KeyFault(`${program} ${commandFault(error)}; run it by hand to see why.`));
      else resolve(output);
    });
  });
}

function commandFault({ code, killed, signal }: ExecFileException): string {
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return `has printed more than ${OUTPUT_BYTES} bytes`;
  if (killed) return `has taken longer than ${COMMAND_MS / 1000} s`;
  if (signal) return `was ended by ${signal}`;
  return typeof code === 'number' ? `has ended with ${code}` : `cannot be run (${code})`;
}

/** Parses a plain key, or JSON in the format of OAuth or the Azure CLI. */
function keyIn(output: string, wall_ms: number): Key {
  const written = output.trim();
  const told = written.startsWith('{') ? parsedJson(written) : { access_token: written };
  if (!isObject(told)) throw new KeyFault('returned JSON that is incomplete or malformed.');
  const text = told.access_token ?? told.accessToken;
  if (typeof text !== 'string') throw new KeyFault('returned JSON without an access_token.');
  if (text === '') throw new KeyFault('returned no key, only white space.');
  if (!/^[\x21-\x7e]+$/.test(text))
    throw new KeyFault(
      'returned something other than a key: it has spaces, line breaks or characters that no key has.',
    );
  const life_ms = lifeOf(told, text, wall_ms);
  return { text, ...(life_ms !== undefined && { life_ms }) };
}

function lifeOf({ expires_in, expires_on }: Readonly<Record<string, unknown>>, key: string, wall_ms: number) {
  const left_s = Number(expires_in);
  if (left_s > 0) return left_s * 1000;
  const end_s = Number(expires_on ?? expiryOf(key));
  return end_s > 0 ? Math.max(0, end_s * 1000 - wall_ms) : undefined;
}

/** The expiry of a JSON Web Token in seconds since the Unix epoch. Not verified, which is the provider's task. */
function expiryOf(key: string): unknown {
  const [, claims = '', signature] = key.split('.');
  if (signature === undefined) return undefined;
  const told = parsedJson(Buffer.from(claims, 'base64url').toString('utf8'));
  return isObject(told) ? told.exp : undefined;
}
