import { collectDefaultMetrics, type Gauge, type ObserveDataWithExemplar, type Registry } from 'prom-client';
import type { RunId } from '../checkpoint/store.ts';
import { CAUSES, PHASES } from '../interrupts/interruption.ts';
import { VERSION } from '../lib/version.ts';
import { BREAKER_STATES, type BreakerState } from '../plans/circuit-breaker.ts';
import { OUTCOMES } from '../plans/outcome.ts';
import { SEAM_KINDS } from '../plans/seam/joint.ts';
import { type ConfiguredNames, type Exposition, expositionOf, Families } from './families.ts';
import * as values from './label-values.ts';

/** Seconds, up to ten minutes, because reasoning models stay silent for long before the first token. */
const FIRST_TOKEN_BUCKETS = [
  0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 15, 20, 30, 45, 60, 90, 120,
  180, 300, 600,
];
/**
 * Seconds of silence for the client: from an unnoticeable reconnect to the longest time a run may go without progress.
 */
const GAP_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640];
/** Seconds of Holdfast's own processing. */
const OVERHEAD_BUCKETS = [
  0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
];
/** Seconds. The largest bucket is about as long as a store is waited for. */
const APPEND_BUCKETS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5,
];

/** A replaceable target: an upstream and the requested model; `''` for the client's model. */
export interface TargetLabels {
  readonly upstream: string;
  readonly model: string;
}

export interface TargetState extends TargetLabels {
  readonly state: BreakerState;
}

/**
 * All series of one process, in their own registry. Label values are closed sets: configured names and the unions in
 * `interrupts/` and `plans/`, never text written by a client or provider.
 */
export class Metrics {
  /**
   * The current state of the targets, evaluated on every read, because a breaker's state can change with time alone.
   */
  targets: () => Iterable<TargetState> = () => [];
  /** Whether this replica should receive new runs. */
  ready: () => boolean = () => true;
  /** Memory used by requests and answers. */
  memory: { readonly held_bytes: number; readonly limit_bytes: number } = { held_bytes: 0, limit_bytes: 0 };
  /** False from a detected failure of the store until it works again. */
  storeWorks = true;
  /** Whether histograms that support it show the id of the last run in each bucket. */
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
    'Attempts that ended early, by cause and by the phase they had reached.',
    { cause: CAUSES, phase: PHASES, upstream: 'upstream' },
  );
  readonly recoveries = this.#families.counter(
    'holdfast_recoveries_total',
    'Plans carried out after an interruption, by how Holdfast asked for the rest.',
    { plan: values.RECOVERY_PLANS, mode: values.RECOVERY_MODES, outcome: values.RECOVERY_OUTCOMES },
    values.RECOVERIES,
  );
  readonly compressions = this.#families.counter(
    'holdfast_compressions_total',
    'Summaries meant to replace a part of a conversation, by outcome.',
    { outcome: values.COMPRESSIONS },
  );
  readonly hedges = this.#families.counter(
    'holdfast_hedges_total',
    'Second targets for a silent one, by whether they gave the answer; denied means that max_share was used up.',
    { outcome: values.HEDGES },
  );
  readonly tasks = this.#families.counter(
    'holdfast_tasks_total',
    'Tasks that were announced, began, were paused or resumed, or ended.',
    { status: values.TASKS },
  );
  readonly steps = this.#families.counter(
    'holdfast_steps_total',
    'Requests that are steps of tasks, by result.',
    { outcome: values.STEPS },
  );
  readonly toolClaims = this.#families.counter(
    'holdfast_tool_claims_total',
    'Claims on tool calls of tasks, by the answer.',
    { outcome: values.TOOL_CLAIMS },
  );
  readonly webhooks = this.#families.counter(
    'holdfast_webhooks_total',
    'Task events for webhook endpoints, by how their delivery ended.',
    { outcome: values.WEBHOOKS },
  );
  readonly recoveryGap = this.#families.histogram(
    'holdfast_recovery_gap_seconds',
    'Silence between the last delta before an interruption and the first one after it, as the client saw it, by the interrupted upstream.',
    GAP_BUCKETS,
    { upstream: 'upstream' },
    { hasExemplars: true },
  );
  readonly seams = this.#families.counter(
    'holdfast_seams_total',
    'Joins between two attempts, by the kind of seam.',
    { kind: SEAM_KINDS },
  );
  readonly timeToFirstToken = this.#families.histogram(
    'holdfast_time_to_first_token_seconds',
    'Time from the complete request to the first delivered token, by the upstream that sent it.',
    FIRST_TOKEN_BUCKETS,
    { upstream: 'upstream' },
    { hasExemplars: true },
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
    "0 while the store refuses this replica's signs of life, 1 otherwise. Redis only.",
    {},
    { collect: () => this.storeUp.set(Number(this.storeWorks)), together: 'min' },
  );
  readonly takeovers = this.#families.counter(
    'holdfast_takeovers_total',
    'Attempts to take over runs of other replicas.',
    { outcome: values.TAKEOVERS },
  );
  readonly salvagedRuns = this.#families.counter(
    'holdfast_salvaged_runs_total',
    'Orphaned runs finalised because no client came back, by final status.',
    { status: values.SALVAGED },
  );
  readonly tokens = this.#families.counter(
    'holdfast_tokens_total',
    'Tokens as reported by providers; kind="repaid": paid for twice because of a recovery, estimated; kind="saved": not paid for, because the step of a task was replayed.',
    { kind: values.TOKENS },
  );
  readonly clientDisconnects = this.#families.counter(
    'holdfast_client_disconnects_total',
    'Clients that left, or were cut off for not reading, before their run ended.',
  );
  readonly malformedEvents = this.#families.counter(
    'holdfast_malformed_events_total',
    'Unreadable events from providers. Before the finish reason, each interrupts its attempt.',
    { upstream: 'upstream' },
  );
  readonly targetState = this.#families.gauge(
    'holdfast_target_state',
    'Circuit breakers of targets: 1 for the current state, 0 for the others; with several workers, the share of them in that state.',
    { upstream: 'upstream', model: 'model', state: BREAKER_STATES },
    { collect: () => this.#readTargets(), together: 'average' },
  );
  readonly targetTransitions = this.#families.counter(
    'holdfast_target_transitions_total',
    'Circuit breakers of targets that opened, again or for the first time, or closed.',
    { upstream: 'upstream', model: 'model', state: values.TRANSITIONS },
  );
  readonly keyRenewals = this.#families.counter(
    'holdfast_key_renewals_total',
    'Renewals of upstream keys from their file or command. While they fail, the last key stays in use.',
    { upstream: 'upstream', outcome: values.RENEWALS },
  );
  readonly configReloads = this.#families.counter(
    'holdfast_config_reloads_total',
    'Reloads of the configuration, by outcome. After a refused one, the last good configuration stays.',
    { outcome: values.RELOADS },
  );
  readonly configLastReloadSuccessful = this.#families.gauge(
    'holdfast_config_last_reload_successful',
    '1 if the last load of the configuration, including the one at start, was accepted, 0 if it was refused.',
  );
  readonly configLastReloadSuccess = this.#families.gauge(
    'holdfast_config_last_reload_success_timestamp_seconds',
    'When a configuration was last loaded and accepted, in seconds since the Unix epoch.',
  );
  readonly memoryRefusals = this.#families.counter(
    'holdfast_memory_refusals_total',
    "Requests refused, and answers ended, because this replica's work took all of limits.memory_bytes.",
  );
  readonly #memoryHeld: Gauge = this.#families.gauge(
    'holdfast_memory_held_bytes',
    'Memory that current requests and answers take, by estimate.',
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
    '1 while this replica takes new runs, 0 while it is draining or lacks a required store.',
    {},
    { collect: () => this.#ready.set(Number(this.ready())), together: 'max' },
  );

  constructor() {
    const build = { version: [VERSION] };
    this.#families
      .gauge('holdfast_build_info', 'Always 1; its label has the version.', build, { together: 'max' })
      .set({ version: VERSION }, 1);
  }

  /** Adds Node.js metrics. Their observers live as long as the process and run at every garbage collection. */
  observeProcess(): void {
    collectDefaultMetrics({ register: this.registry });
  }

  get registry(): Registry {
    return this.#families.registry;
  }

  /** All metrics except those of Node.js. */
  get families(): Families {
    return this.#families;
  }

  /** Starts every series that is known in advance. */
  begin(configured: ConfiguredNames): void {
    this.#families.begin(configured);
    for (const { upstream, model } of this.targets()) {
      for (const state of values.TRANSITIONS) this.targetTransitions.inc({ upstream, model, state }, 0);
    }
  }

  /** A histogram value for the upstream, with the run as its exemplar. */
  ofRun(run: RunId, upstream: string, value: number): ObserveDataWithExemplar<'upstream'> {
    const labelled = { labels: { upstream }, value };
    // The library's types only allow the names of labels.
    const exemplarLabels: object = { run_id: run };
    return this.exemplars ? { ...labelled, exemplarLabels } : labelled;
  }

  /** `accept`: the scraper's `Accept` header. */
  exposition(accept: string | undefined): Promise<Exposition> {
    return expositionOf(this.registry, accept);
  }

  #readTargets(): void {
    // Removes targets that no longer exist.
    this.targetState.reset();
    for (const { upstream, model, state } of this.targets()) {
      for (const each of BREAKER_STATES)
        this.targetState.set({ upstream, model, state: each }, Number(each === state));
    }
  }
}
