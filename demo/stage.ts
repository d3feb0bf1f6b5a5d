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

/** How long the provider may stay silent. The default of 90 s would make for a dull demo. */
export const IDLE_MS = 1_200;

/** How soon Holdfast notices a killed replica. The default is 3 s. */
const LEASE_MS = 900;
const REPLICAS = 2;

export interface Replica {
  readonly service: Service;
  /** Base URL for an SDK. */
  readonly url: string;
}

/** The demo's processes and their addresses. */
export interface Stage {
  readonly provider_url: string;
  /** The replicas share a store. */
  readonly replicas: readonly [Replica, ...Replica[]];
  /** Stops the processes. Their files are removed when this process exits. */
  strike(): Promise<void>;
}

/** Starts the faulty provider and two replicas of Holdfast in front of it. */
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
    const checkpoint = { store: `file:${join(directory, 'runs')}`, lease_ms: LEASE_MS };
    const configuration = { upstreams: { provider: upstream }, checkpoint };
    const config = write(directory, 'holdfast.yaml', stringify(configuration));
    const [first, ...others] = await Promise.all(
      Array.from({ length: REPLICAS }, () => startReplica(config, services)),
    );
    if (!first) throw new Error('there is no replica');
    return { provider_url: String(url), replicas: [first, ...others], strike };
  } catch (error) {
    await strike();
    throw error;
  }
}

async function startReplica(config: string, services: Service[]): Promise<Replica> {
  const words = ['serve', '--config', config, '--port', '0', '--admin-port', '0'];
  const service = new Service('holdfast', [HOLDFAST, ...words]);
  services.push(service);
  const { api } = await service.said((line) => line.msg === 'listening');
  return { service, url: `${api}/v1` };
}

const scriptsOf = (acts: readonly Act[]) =>
  Object.fromEntries(acts.map(({ model, script }) => [model, script]));

/** Trusts the provider's self-signed certificate, because this process requests the uncut answers itself. */
function trust(ca_file: string): void {
  setDefaultCACertificates([readFileSync(ca_file, 'utf8')]);
}

function write(directory: string, name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}
