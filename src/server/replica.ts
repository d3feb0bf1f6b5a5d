import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import { loadOrCreateSecret } from '../checkpoint/secret-file.ts';
import type { Configuration } from '../config/configuration.ts';
import { systemTime } from '../lib/time.ts';
import { Metrics } from '../metrics/metrics.ts';
import { relay } from '../proxy/run/relay.ts';
import type { UpstreamKeysOptions } from '../proxy/upstream/upstream-keys.ts';
import { tracingSettings } from '../tracing/settings.ts';
import type { Tracing } from '../tracing/tracing.ts';
import { freeCompilerMemoryAtOnce } from './compiler-memory.ts';
import { openStore } from './open-store.ts';
import { Reloads } from './reload.ts';
import { Resources } from './resources.ts';
import { createServer, type WorkerPlace } from './server.ts';
import type { Service, ServiceOptions } from './service.ts';
import { fileStoreDirectory } from './store-directory.ts';
import { boundYoungGeneration } from './young-generation.ts';

const SECRET_BYTES = 32;

interface ReplicaOptions extends ServiceOptions {
  /** Present if the process is one of several that share the ports. */
  readonly worker?: WorkerPlace;
}

export interface Replica extends Service {
  readonly metrics: Metrics;
  /** Like {@link stop}, but leaves new connections at the API port to other processes at once. */
  leave(): Promise<void>;
}

export async function openReplica({ configuration, load, log, worker }: ReplicaOptions): Promise<Replica> {
  const metrics = new Metrics();
  metrics.observeProcess();
  const keys: UpstreamKeysOptions = {
    time: systemTime,
    onRenewal: (upstream, fault) => {
      metrics.keyRenewals.inc({ upstream, outcome: fault === undefined ? 'renewed' : 'failed' });
      if (fault !== undefined) log.error({ upstream, fault }, 'the key of an upstream could not be renewed');
    },
  };
  const resources = await Resources.open(configuration, keys);
  const store = await openStore(configuration.checkpoint.store, {
    ...configuration.checkpoint,
    secret: configuration.secret,
    time: systemTime,
    onError: (error) => log.error({ err: error }, 'store upkeep failed'),
    onOutage: (error) => {
      metrics.storeWorks = false;
      log.warn({ err: error }, 'the store fails: runs continue without checkpoints');
    },
    onRecovery: (outage_ms) => {
      metrics.storeWorks = true;
      log.info({ outage_ms: Math.round(outage_ms) }, 'the store works again');
    },
    onDoubt: (doubt) => log.warn(`checkpoint.store: Redis may lose runs: ${doubt}`),
  });
  const secret = await resolveSecret(configuration);
  const tracing = await startTracing(configuration, log);
  const observersOf = (served: Configuration) => (tracing ? [tracing.observerOf(served)] : []);
  const { transport, webhooks } = resources;
  const server = createServer(resources.current, {
    ...{ relay, store, transport, secret, log, metrics, webhooks },
    observers: observersOf(configuration),
    // Processes that share the ports are reloaded together, by their supervisor.
    ...(worker ? { worker } : { reload: () => reloads.request('request') }),
  });
  const reloads = new Reloads(server, resources, { load, keys, metrics, log, observersOf });

  const end = async (isLeaving: boolean): Promise<void> => {
    await reloads.stop();
    await server.drain(isLeaving);
    await server.close();
    await reloads.close();
    await Promise.all([store.close(), tracing?.close()]);
  };
  return {
    metrics,
    get configuration() {
      return reloads.configuration;
    },
    async listen() {
      const urls = await server.listen();
      boundYoungGeneration();
      freeCompilerMemoryAtOnce();
      return urls;
    },
    reload: (cause) => reloads.request(cause),
    async stop() {
      await end(false);
      const [runs, gaps] = await Promise.all([metrics.runs.get(), metrics.recoveryGap.get()]);
      return { runs: runs.values, gaps: gaps.values };
    },
    leave: () => end(true),
    abort() {},
  };
}

/** The configured secret, or the one stored with the file store, or one that lives as long as the memory store. */
async function resolveSecret({ secret, checkpoint }: Configuration): Promise<string> {
  if (secret !== undefined) return secret;
  const directory = fileStoreDirectory(checkpoint.store);
  return directory === undefined
    ? randomBytes(SECRET_BYTES).toString('base64url')
    : loadOrCreateSecret(directory);
}

/** Loads the OpenTelemetry SDK only if tracing is enabled. */
async function startTracing(configuration: Configuration, log: Logger): Promise<Tracing | undefined> {
  const { settings, warnings } = tracingSettings(configuration.tracing, process.env);
  for (const warning of warnings) log.warn(warning);
  if (!settings) return undefined;
  const { createTracing } = await import('../tracing/tracing.ts');
  const { sampling, url } = settings;
  log.info({ receiver: new URL(url).host, sampling }, 'traces are exported');
  return createTracing(settings, log, systemTime);
}
