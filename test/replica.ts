import { PassThrough as Pipe } from 'node:stream';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import type { Lease, Store } from '../src/checkpoint/store.ts';
import { readCertificateAuthorities } from '../src/config/certificates.ts';
import { completeConfiguration } from '../src/config/load.ts';
import { createLogger } from '../src/log.ts';
import { Metrics } from '../src/metrics.ts';
import type { Relay } from '../src/proxy/api.ts';
import type { Transport } from '../src/proxy/transport.ts';
import { createServer, type Server } from '../src/server.ts';

export const SECRET = 'a secret for tests only';

/** Accepts everything and keeps nothing; `fault` makes `check` reject. */
export class IdleStore implements Store {
  readonly name = 'memory';
  fault: Error | undefined;

  async acquire(run: Lease['run'], owner: Lease['owner']): Promise<Lease> {
    return { run, owner, epoch: 1 };
  }
  async append(): Promise<number> {
    return 0;
  }
  async finish(): Promise<void> {}
  async read(): Promise<null> {
    return null;
  }
  async check(): Promise<void> {
    if (this.fault) throw this.fault;
  }
  async close(): Promise<void> {}
}

const noTransport: Transport = {
  open: () => Promise.reject(new Error('the relay of this test opens nothing')),
  close: async () => {},
};

/** Ends every run at once with one event. */
export const shortRelay: Relay = async (_run, client) => {
  client.open({});
  client.end('data: [DONE]\n\n');
  return 'complete';
};

export interface Replica {
  readonly server: Server;
  readonly api: string;
  readonly admin: string;
  readonly store: IdleStore;
  readonly metrics: Metrics;
  /** Closes the log and returns everything written to it. */
  log(): Promise<string>;
}

/** A replica on free ports, closed when the test ends. `tree` is the configuration as a file would have it. */
export async function startReplica(
  tree: Record<string, unknown>,
  relay: Relay = shortRelay,
): Promise<Replica> {
  const configuration = completeConfiguration({
    checkpoint: { store: 'memory' },
    listen: { port: 0, admin_port: 0 },
    ...tree,
  });
  const store = new IdleStore();
  const metrics = new Metrics();
  const lines = new Pipe();
  const log = createLogger('trace', lines);
  const authorities = readCertificateAuthorities(configuration);
  const server = createServer(configuration, {
    authorities,
    relay,
    store,
    metrics,
    transport: noTransport,
    secret: SECRET,
    log,
  });
  onTestFinished(() => server.close());
  const urls = await server.listen();
  return { server, ...urls, store, metrics, log: () => text(lines.end()) };
}

/** An upstream nobody listens on: port 9 of a loopback address is never opened by tests. */
export const NO_UPSTREAM_URL = 'http://127.0.0.1:9/v1';

export const upstreamsAt = (base_url: string, more: Record<string, unknown> = {}) => ({
  upstreams: { provider: { base_url, ...more } },
});
