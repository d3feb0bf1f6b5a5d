import { collectDefaultMetrics, type Gauge, type ObserveDataWithExemplar, type Registry } from 'prom-client';
import type { RunId } from '../checkpoint/store.ts';
import { CAUSES, PHASES } from '../interrupts/interruption.ts';
import { VERSION } from '../lib/version.ts';
import { BREAKER_STATES, type BreakerState } from '../plans/circuit-breaker.ts';
import { OUTCOMES } from '../plans/outcome.ts';
import { SEAM_KINDS } from '../plans/seam/joint.ts';
import { type ConfiguredNames, type Exposition, expositionOf, Families } from './families.ts';
import * as values from './label-values.ts';

/** Seconds. Up to ten minutes, because reasoning models are silent for long before the first token. */
const FIRST_TOKEN_BUCKETS = [
  0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 15, 20, 30, 45, 60, 90, 120,
  180, 300, 600,
];
/** Seconds of silence the client felt: from an unnoticeable reconnect to as long as a run may go without progress. */
const GAP_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640];
/** Seconds of our own work. */
const OVERHEAD_BUCKETS = [
  0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
];
/** Seconds. The last one is about as long as a store is waited for. */
const APPEND_BUCKETS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5,
];

/** A target that others can stand in for: an upstream, and the model it is asked for; `''` for the client's. */
export interface TargetLabels {
  readonly upstream: string;
  readonly model: string;
}

export interface TargetState extends TargetLabels {
  readonly state: BreakerState;
}

/**
 * All series of one process, in a registry of their own. Label values are closed sets: names from the
 * configuration, the unions in `interrupts/` and `plans/`, never anything a client or a provider wrote.
 */
export class Metrics {
  /** What there is to say of the targets, whenever their gauge is read: time alone changes the state of a breaker. */
  targets: () => Iterable<TargetState> = () => [];
  /** Whether this replica is to be sent new runs. */
  ready: () => boolean = () => true;
  /** What requests and answers hold. */
  memory: { readonly held_bytes: number; readonly limit_bytes: number } = { held_bytes: 0, limit_bytes: 0 };
  /** False from the time when the store is found not to work until it works again. */
  storeWorks = true;
  /** Whether histograms that can show it tell the id of the last run of each bucket. */
  exemplars = true;
  readonly #families = new Families();

  readonly runs = this.#families.counter(
    'holdfast_runs_total',
    'Runs that ended on this replica, by how they ended.',
    { wire: values.WIRES, outcome: OUTCOMES },
  );
  readonly activeRuns = this.#families.gauge('holdfast_runs_active', 'Runs being delivered now.');
  readonly interruptions = this.#families.counter(
    'holdfast_interruptions_total',
    'Attempts that ended early, by cause and by how far they had come.',
    { cause: CAUSES, phase: PHASES, upstream: 'upstream' },
  );
  readonly recoveries = this.#families.counter(
    'holdfast_recoveries_total',
    'Plans carried out after an interruption, by the way in which the rest was asked for.',
    { plan: values.RECOVERY_PLANS, mode: values.RECOVERY_MODES, outcome: values.RECOVERY_OUTCOMES },
    values.RECOVERIES,
  );
  readonly compressions = this.#families.counter(
    'holdfast_compressions_total',
    'Summaries that were to take the place of a part of a conversation, by their outcome.',
    { outcome: values.COMPRESSIONS },
  );
  readonly hedges = this.#families.counter(
    'holdfast_hedges_total',
    'Second targets asked beside a silent one, by whether they gave the answer; denied were over the share that is allowed.',
    { outcome: values.HEDGES },
  );
  readonly tasks = this.#families.counter(
    'holdfast_tasks_total',
    'Tasks that were announced, began, were resumed or paused, or have ended.',
    { status: values.TASKS },
  );
  readonly steps = this.#families.counter(
    'holdfast_steps_total',
    'Requests that are steps of tasks, by what they got.',
    { outcome: values.STEPS },
  );
  readonly toolClaims = this.#families.counter(
    'holdfast_tool_claims_total',
    'Tool calls of tasks that clients were about to run, by the answer to their claims.',
    { outcome: values.TOOL_CLAIMS },
  );
  readonly webhooks = this.#families.counter(
    'holdfast_webhooks_total',
    'Events of tasks for the endpoints of webhooks, by how their delivery ended.',
    { outcome: values.WEBHOOKS },
  );
  readonly recoveryGap = this.#families.histogramWithExemplars(
    'holdfast_recovery_gap_seconds',
    'Silence the client felt between the last delta before an interruption and the first one after it, by the upstream that was interrupted.',
    GAP_BUCKETS,
    { upstream: 'upstream' },
  );
  readonly seams = this.#families.counter(
    'holdfast_seams_total',
    'Joins between two attempts, by what was found there.',
    { kind: SEAM_KINDS },
  );
  readonly timeToFirstToken = this.#families.histogramWithExemplars(
    'holdfast_time_to_first_token_seconds',
    'From the complete request to the first token delivered, by the upstream that it came from.',
    FIRST_TOKEN_BUCKETS,
    { upstream: 'upstream' },
  );
  readonly overhead = this.#families.histogram(
    'holdfast_overhead_seconds',
    'Time an event spent inside Holdfast; measured for one batch of events in 64.',
    OVERHEAD_BUCKETS,
  );
  readonly attempts = this.#families.counter('holdfast_attempts_total', 'Upstream requests made for runs.', {
    upstream: 'upstream',
    outcome: values.ATTEMPTS,
  });
  readonly checkpointAppend = this.#families.histogram(
    'holdfast_checkpoint_append_seconds',
    'Time the store took to append a batch.',
    APPEND_BUCKETS,
    { store: 'store' },
  );
  readonly checkpointErrors = this.#families.counter(
    'holdfast_checkpoint_errors_total',
    'Batches the store refused or failed to append; the runs continued without them.',
    { store: 'store' },
  );
  readonly storeUp: Gauge = this.#families.gauge(
    'holdfast_store_up',
    '0 while the store does not take the signs of life of this replica, 1 otherwise. Only Redis is asked to.',
    {},
    { collect: () => this.storeUp.set(Number(this.storeWorks)), together: 'min' },
  );
  readonly takeovers = this.#families.counter(
    'holdfast_takeovers_total',
    'Runs of another replica taken over, or attempts at it.',
    { outcome: values.TAKEOVERS },
  );
  readonly salvagedRuns = this.#families.counter(
    'holdfast_salvaged_runs_total',
    'Orphaned runs that no client came back for and that were finalised, by their final status.',
    { status: values.SALVAGED },
  );
  readonly tokens = this.#families.counter(
    'holdfast_tokens_total',
    'Tokens as reported by providers; kind="repaid" were paid for twice because of a recovery, and are estimated; kind="saved" were not, because the step of a task was replayed.',
    { kind: values.TOKENS },
  );
  readonly clientDisconnects = this.#families.counter(
    'holdfast_client_disconnects_total',
    'Clients that left, or were cut off for taking nothing, before their run ended.',
  );
  readonly malformedEvents = this.#families.counter(
    'holdfast_malformed_events_total',
    'Events of a provider that could not be read. Before the finish reason each interrupts its attempt.',
    { upstream: 'upstream' },
  );
  readonly targetState = this.#families.gauge(
    'holdfast_target_state',
    'Circuit breakers of targets: 1 for the state that one is in, 0 for the others; of several workers the share that has it in that state.',
    { upstream: 'upstream', model: 'model', state: BREAKER_STATES },
    { collect: () => this.#readTargets(), together: 'average' },
  );
  readonly targetTransitions = this.#families.counter(
    'holdfast_target_transitions_total',
    'Circuit breakers of targets that opened, for the first time or again, or closed.',
    { upstream: 'upstream', model: 'model', state: values.TRANSITIONS },
  );
  readonly keyRenewals = this.#families.counter(
    'holdfast_key_renewals_total',
    'Keys of upstreams that were read again from their file or command. While that fails, the last key stays.',
    { upstream: 'upstream', outcome: values.RENEWALS },
  );
  readonly configReloads = this.#families.counter(
    'holdfast_config_reloads_total',
    'Reloads of the configuration, by what came of them. While one is refused, the last good configuration stays.',
    { outcome: values.RELOADS },
  );
  readonly configLastReloadSuccessful = this.#families.gauge(
    'holdfast_config_last_reload_successful',
    '1 if the configuration was accepted when it was loaded last, at the start included, 0 if it was refused.',
  );
  readonly configLastReloadSuccess = this.#families.gauge(
    'holdfast_config_last_reload_success_timestamp_seconds',
    'When a configuration was loaded and accepted last, in seconds since the Unix epoch.',
  );
  readonly memoryRefusals = this.#families.counter(
    'holdfast_memory_refusals_total',
    'Requests that were refused, and answers that were ended, because what this replica delivers took all of limits.memory_bytes.',
  );
  readonly #memoryHeld: Gauge = this.#families.gauge(
    'holdfast_memory_held_bytes',
    'Memory that requests and answers under way take, by estimate.',
    {},
    { collect: () => this.#memoryHeld.set(this.memory.held_bytes) },
  );
  readonly #memoryLimit: Gauge = this.#families.gauge(
    'holdfast_memory_limit_bytes',
    'Memory that they may take: limits.memory_bytes.',
    {},
    { collect: () => this.#memoryLimit.set(this.memory.limit_bytes) },
  );

  readonly #ready: Gauge = this.#families.gauge(
    'holdfast_ready',
    '1 while this replica is to be sent new runs, 0 while it is draining or lacks a store that it must have.',
    {},
    { collect: () => this.#ready.set(Number(this.ready())), together: 'max' },
  );

  constructor() {
    const build = { version: [VERSION] };
    this.#families
      .gauge('holdfast_build_info', 'Always 1; says which version this is.', build, { together: 'max' })
      .set({ version: VERSION }, 1);
    collectDefaultMetrics({ register: this.registry });
  }

  get registry(): Registry {
    return this.#families.registry;
  }

  /** What there is besides the metrics of Node.js. */
  get families(): Families {
    return this.#families;
  }

  /** Every series that is known beforehand exists from now on. */
  begin(configured: ConfiguredNames): void {
    this.#families.begin(configured);
    for (const { upstream, model } of this.targets()) {
      for (const state of values.TRANSITIONS) this.targetTransitions.inc({ upstream, model, state }, 0);
    }
  }

  /** A value of a histogram by the upstream, marked with the run that it is of. */
  ofRun(run: RunId, upstream: string, value: number): ObserveDataWithExemplar<'upstream'> {
    const labelled = { labels: { upstream }, value };
    // The library's types know no other names than those of labels.
    const exemplarLabels: object = { run_id: run };
    return this.exemplars ? { ...labelled, exemplarLabels } : labelled;
  }

  /** `accept`: what the scraper says that it takes. */
  exposition(accept: string | undefined): Promise<Exposition> {
    return expositionOf(this.registry, accept);
  }

  #readTargets(): void {
    // Those of targets that there are no more.
    this.targetState.reset();
    for (const { upstream, model, state } of this.targets()) {
      for (const each of BREAKER_STATES)
        this.targetState.set({ upstream, model, state: each }, Number(each === state));
    }
  }
}
