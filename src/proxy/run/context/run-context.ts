import type { Logger } from 'pino';
import type { CheckpointScheduler } from '../../../checkpoint/checkpoint-scheduler.ts';
import type { Store } from '../../../checkpoint/store.ts';
import type { Configuration } from '../../../config/configuration.ts';
import type { PauseWatch } from '../../../lib/pause-watch.ts';
import type { Time } from '../../../lib/time.ts';
import type { Metrics } from '../../../metrics/metrics.ts';
import type { Outcome } from '../../../plans/outcome.ts';
import type { Client } from '../../downstream/client.ts';
import type { Transport } from '../../upstream/transport.ts';
import type { CapabilityMemory } from '../../wires/dialects/capability-memory.ts';
import type { Run } from './run.ts';
import type { RunObserver } from './run-observer.ts';

/** Everything a run needs from its process. */
export interface RunContext {
  readonly configuration: Configuration;
  readonly transport: Transport;
  readonly store: Store;
  readonly scheduler: CheckpointScheduler;
  readonly pauses: PauseWatch;
  readonly capabilities: CapabilityMemory;
  readonly metrics: Metrics;
  readonly observer: RunObserver;
  readonly log: Logger;
  readonly time: Time;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** Delivers one run to its end; see relay.ts. */
export type Relay = (run: Run, client: Client, context: RunContext) => Promise<Outcome>;
