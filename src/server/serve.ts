import { closeSync, openSync } from 'node:fs';
import type { DestinationStream } from 'pino';
import { type Configuration, workerCount } from '../config/configuration.ts';
import { type ConfigurationSources, configurationFile, loadConfiguration } from '../config/load.ts';
import { createLogger } from '../lib/log.ts';
import { FileWatch } from './file-watch.ts';
import type { ReloadCause } from './reload-report.ts';
import { openReplica } from './replica.ts';
import type { OpenService, Totals } from './service.ts';

const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** What the operator sees of a replica where it was started. */
export interface OperatorView {
  /** Returns the destination of the log's lines, each a JSON object. */
  log(settings: Configuration['log']): DestinationStream;
  /** Both ports are open. */
  listening(urls: { readonly api: string; readonly admin: string }, configuration: Configuration): void;
  /** Everything has ended. */
  stopped(totals: Totals): void;
}

/**
 * Runs a replica, or `workers` of them, until the first SIGTERM or SIGINT, then drains and resolves. A second signal
 * exits at once. SIGHUP and changes of the configuration file reload. `several`: loads the module that runs several
 * processes. Rejects with a ConfigurationError, StoreConfigurationError or ListenError if the start fails.
 */
export async function serve(
  sources: ConfigurationSources,
  view: OperatorView,
  several: () => Promise<OpenService>,
): Promise<void> {
  const file = configurationFile(sources);
  const watch = file === undefined ? undefined : new FileWatch(file);
  const load = () => loadConfiguration(sources);
  const { configuration, warnings } = load();
  const log = createLogger(configuration.log.level, view.log(configuration.log));
  for (const warning of warnings) log.warn(warning);

  const open = workerCount(configuration) > 1 ? await several() : openReplica;
  const service = await open({ configuration, load, log });
  // Errors are already logged.
  const reload = (cause: ReloadCause) => void service.reload(cause).catch(() => {});
  const stop = firstSignal({ onReload: () => reload('signal'), onSecond: () => service.abort() });
  const urls = await service.listen();
  watch?.start({
    onChange: () => reload('file'),
    onFault: (error) =>
      log.warn({ file, err: error }, 'the configuration file is not watched: send SIGHUP after changes'),
  });
  view.listening(urls, configuration);
  log.info(urls, 'listening');

  const signal = await Promise.race([stop, ...(service.failure ? [service.failure] : [])]);
  watch?.close();
  log.info({ signal, drain_ms: service.configuration.limits.drain_ms }, 'draining');
  const totals = await service.stop();
  log.info('stopped');
  view.stopped(totals);
}

interface SignalHandlers {
  onReload(): void;
  /** The process exits right afterwards. */
  onSecond(): void;
}

/**
 * Resolves with the first stop signal; the second one ends the process. SIGHUP counts as a stop signal only if it means
 * that the process's terminal was closed.
 */
function firstSignal({ onReload, onSecond }: SignalHandlers): Promise<NodeJS.Signals> {
  const hadTerminal = hasTerminal();
  return new Promise((resolve) => {
    let stopping = false;
    const onSignal = (signal: NodeJS.Signals) => {
      if (stopping) {
        onSecond();
        process.exit(1);
      }
      stopping = true;
      resolve(signal);
    };
    for (const signal of STOP_SIGNALS) process.on(signal, onSignal);
    process.on('SIGHUP', (signal) => {
      if (hadTerminal && !hasTerminal()) onSignal(signal);
      else onReload();
    });
  });
}

/** Whether the process has a controlling terminal. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}
