import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPortkey } from '../../bench/proxies/portkey.ts';
import { installedLitellm, startLitellm } from '../../scripts/conformance/gateways/litellm.ts';
import { installedPortkey } from '../../scripts/conformance/gateways/portkey.ts';
import type { CachedProgram } from '../cached-program.ts';
import { HoldfastProcess } from '../e2e/holdfast-process.ts';
import { type Addresses, block, holdfastTree, KEY, providerAt } from './page.ts';

/** What a client needs to reach a gateway. */
export interface Entrance {
  /** The base URL, ending in `/v1`. */
  readonly url: string;
  readonly key: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The running processes, configured as on the page. */
export interface Started {
  /** What the application connects to. */
  readonly front: Entrance;
  /** The other gateway on its own, or the same as `front`. */
  readonly gateway: Entrance;
}

export interface Composition {
  /** The models to request, by row of the page's table. */
  readonly rows: Readonly<Record<string, string>>;
  readonly gateway: CachedProgram;
  /**
   * For a gateway in front of Holdfast: the response header with the id of the run, and whether the client may resume.
   */
  readonly answers?: { readonly run_id: string; readonly resumable: boolean };
  /** For a gateway behind Holdfast: whether it forwards fields that OpenAI's API doesn't have. */
  readonly passesFields?: boolean;
  /** Registers everything that has to be stopped in `ends`. */
  start(provider_url: string, ends: AsyncDisposableStack): Promise<Started>;
}

const HOLDFAST = 'http://holdfast:8080/v1';
const LITELLM = 'http://litellm:4000/v1';
const PORTKEY = 'http://portkey:8787/v1';

export const [litellm, portkey] = await Promise.all([installedLitellm(), installedPortkey()]);

async function holdfast(words: string, addresses: Addresses, ends: AsyncDisposableStack): Promise<string> {
  const process = await HoldfastProcess.start(holdfastTree(words, addresses));
  ends.defer(() => process.close());
  return process.url;
}

function directory(ends: AsyncDisposableStack): string {
  const path = mkdtempSync(join(tmpdir(), 'holdfast-compositions-'));
  ends.defer(() => rmSync(path, { recursive: true }));
  return path;
}

async function litellmAt(words: string, addresses: Addresses, ends: AsyncDisposableStack): Promise<Entrance> {
  if ('missing' in litellm) throw new Error(litellm.missing);
  const place = directory(ends);
  const configuration = join(place, 'litellm.yaml');
  writeFileSync(configuration, block('yaml', words, addresses));
  const keys = { OPENAI_API_KEY: KEY, VLLM_API_KEY: KEY };
  const { url, key, stop } = await startLitellm(litellm.path, configuration, place, keys);
  ends.defer(stop);
  return { url: `${url}/v1`, key };
}

/** Starts Portkey and returns its base URL. */
export async function portkeyUrl(ends: AsyncDisposableStack): Promise<string> {
  if ('missing' in portkey) throw new Error(portkey.missing);
  const { port, stop } = await startPortkey(portkey.path, directory(ends));
  ends.defer(stop);
  return `http://127.0.0.1:${port}/v1`;
}

export const portkeyHeaders = (provider: string, custom_host: string) => ({
  'x-portkey-config': JSON.stringify({ provider, custom_host, api_key: KEY }),
});

/** A header value must be on one line. */
const onOneLine = (json: string): string => JSON.stringify(JSON.parse(json));

const IN_FRONT_OF_OPENAI = 'openai: { base_url: https://api.openai.com/v1 }';

export const COMPOSITIONS: readonly Composition[] = [
  {
    rows: { 'LiteLLM → Holdfast': 'gpt-5' },
    gateway: litellm,
    answers: { run_id: 'llm_provider-holdfast-run-id', resumable: false },
    async start(provider_url, ends) {
      const url = await holdfast(IN_FRONT_OF_OPENAI, providerAt(provider_url), ends);
      const gateway = await litellmAt(`api_base: ${HOLDFAST}`, { [HOLDFAST]: url }, ends);
      return { front: gateway, gateway };
    },
  },
  {
    rows: { 'Holdfast → LiteLLM': 'gpt-5', 'Holdfast → LiteLLM → vLLM': 'llama-4' },
    gateway: litellm,
    passesFields: true,
    async start(provider_url, ends) {
      const gateway = await litellmAt('hosted_vllm/', providerAt(provider_url), ends);
      const url = await holdfast(`base_url: ${LITELLM}`, { [LITELLM]: gateway.url }, ends);
      return { front: { url, key: gateway.key }, gateway };
    },
  },
  {
    rows: { 'Portkey → Holdfast': 'gpt-5' },
    gateway: portkey,
    answers: { run_id: 'holdfast-run-id', resumable: true },
    async start(provider_url, ends) {
      const url = await holdfast(IN_FRONT_OF_OPENAI, providerAt(provider_url), ends);
      const headers = { 'x-portkey-config': onOneLine(block('json', '"custom_host"', { [HOLDFAST]: url })) };
      const gateway = { url: await portkeyUrl(ends), key: KEY, headers };
      return { front: gateway, gateway };
    },
  },
  {
    rows: { 'Holdfast → Portkey': 'gpt-5' },
    gateway: portkey,
    passesFields: false,
    async start(provider_url, ends) {
      const gateway_url = await portkeyUrl(ends);
      const addresses = { ...providerAt(provider_url), [PORTKEY]: gateway_url };
      const url = await holdfast(`base_url: ${PORTKEY}`, addresses, ends);
      const headers = portkeyHeaders('openai', provider_url);
      return { front: { url, key: KEY }, gateway: { url: gateway_url, key: KEY, headers } };
    },
  },
  {
    rows: { 'Holdfast → vLLM': 'llama-4' },
    gateway: { path: 'the scripted provider' },
    async start(provider_url, ends) {
      const url = await holdfast('\n  vllm: {', providerAt(provider_url), ends);
      const front = { url, key: KEY };
      return { front, gateway: front };
    },
  },
];
