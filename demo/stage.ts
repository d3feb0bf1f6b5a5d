import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setDefaultCACertificates } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import type { Act } from './acts.ts';
import { Service } from './service.ts';

const PROVIDER = fileURLToPath(new URL('../test/provider/main.ts', import.meta.url));
const HOLDFAST = fileURLToPath(new URL('../dist/cli.js', import.meta.url));

/** How long Holdfast lets the provider be silent. The default of 90 s would make for a dull demo. */
export const IDLE_MS = 1_200;

/** The processes of the demo, and where they listen. */
export interface Stage {
  readonly holdfast: Service;
  /** Base URLs for an SDK. */
  readonly provider_url: string;
  readonly holdfast_url: string;
  /** Stops the processes. Their files are removed when this one exits. */
  strike(): Promise<void>;
}

/** Starts the provider that breaks, and Holdfast in front of it. */
export async function setStage(acts: readonly Act[]): Promise<Stage> {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-demo-'));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  const services: Service[] = [];
  const strike = async () => {
    await Promise.all(services.map((service) => service.stop()));
  };
  try {
    const scenario = write(directory, 'scenario.json', JSON.stringify({ scripts: scriptsOf(acts) }));
    const provider = new Service('provider', [PROVIDER, '--protocol', 'h2', '--scenario', scenario]);
    services.push(provider);
    const { url, ca_file } = await provider.said((line) => line.url !== undefined);
    trust(String(ca_file));

    const upstream = { base_url: url, ca_file, clocks: { idle_ms: IDLE_MS } };
    const config = write(directory, 'holdfast.yaml', stringify({ upstreams: { provider: upstream } }));
    const store = `file:${join(directory, 'runs')}`;
    const words = ['serve', '--config', config, '--store', store, '--port', '0', '--admin-port', '0'];
    const holdfast = new Service('holdfast', [HOLDFAST, ...words]);
    services.push(holdfast);
    const { api } = await holdfast.said((line) => line.msg === 'listening');
    return { holdfast, provider_url: String(url), holdfast_url: `${api}/v1`, strike };
  } catch (error) {
    await strike();
    throw error;
  }
}

const scriptsOf = (acts: readonly Act[]) =>
  Object.fromEntries(acts.map(({ model, script }) => [model, script]));

/** The provider's certificate is its own authority; this process asks it for the uncut answers. */
function trust(ca_file: string): void {
  setDefaultCACertificates([readFileSync(ca_file, 'utf8')]);
}

function write(directory: string, name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}
