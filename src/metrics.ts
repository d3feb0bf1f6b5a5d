import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { BREAKER_STATES, type BreakerState } from './plans/circuit-breaker.ts';

/** Seconds. Up to a minute, because reasoning models are silent for long before the first token. */
const FIRST_TOKEN_BUCKETS = [
  0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 15, 20, 30, 45, 60, 120,
];
/** Seconds of silence the client felt: from an unnoticeable reconnect to a long wait for a provider. */
const GAP_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320];
/** Seconds of our own work. */
const OVERHEAD_BUCKETS = [0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25];
const APPEND_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];

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
  readonly registry = new Registry();
  /** What there is to say of the targets, whenever their gauge is read: time alone changes the state of a breaker. */
  targets: () => Iterable<TargetState> = () => [];
  readonly #registers = [this.registry];

  readonly runs = new Counter({
    name: 'holdfast_runs_total',
    help: 'Runs that ended, by how they ended.',
    labelNames: ['wire', 'outcome'],
    registers: this.#registers,
  });
  readonly activeRuns = new Gauge({
    name: 'holdfast_runs_active',
    help: 'Runs being delivered now.',
    registers: this.#registers,
  });
  readonly interruptions = new Counter({
    name: 'holdfast_interruptions_total',
    help: 'Attempts that ended early, by cause and by how far they had come.',
    labelNames: ['cause', 'phase', 'upstream'],
    registers: this.#registers,
  });
  readonly recoveries = new Counter({
    name: 'holdfast_recoveries_total',
    help: 'Plans carried out after an interruption.',
    labelNames: ['plan', 'mode', 'outcome'],
    registers: this.#registers,
  });
  readonly compressions = new Counter({
    name: 'holdfast_compressions_total',
    help: 'Summaries that were to take the place of a part of a conversation, by what came of them.',
    labelNames: ['outcome'],
    registers: this.#registers,
  });
  readonly recoveryGap = new Histogram({
    name: 'holdfast_recovery_gap_seconds',
    help: 'Silence the client felt between the last delta before an interruption and the first one after it.',
    buckets: GAP_BUCKETS,
    registers: this.#registers,
  });
  readonly seams = new Counter({
    name: 'holdfast_seams_total',
    help: 'Joins between two attempts, by what was found there.',
    labelNames: ['kind'],
    registers: this.#registers,
  });
  readonly timeToFirstToken = new Histogram({
    name: 'holdfast_time_to_first_token_seconds',
    help: 'From the complete request to the first token delivered.',
    buckets: FIRST_TOKEN_BUCKETS,
    registers: this.#registers,
  });
  readonly overhead = new Histogram({
    name: 'holdfast_overhead_seconds',
    help: 'Time an event spent inside Holdfast.',
    buckets: OVERHEAD_BUCKETS,
    registers: this.#registers,
  });
  readonly attempts = new Counter({
    name: 'holdfast_attempts_total',
    help: 'Upstream requests made for runs.',
    labelNames: ['upstream', 'outcome'],
    registers: this.#registers,
  });
  readonly checkpointAppend = new Histogram({
    name: 'holdfast_checkpoint_append_seconds',
    help: 'Time the store took to append a batch.',
    labelNames: ['store'],
    buckets: APPEND_BUCKETS,
    registers: this.#registers,
  });
  readonly checkpointErrors = new Counter({
    name: 'holdfast_checkpoint_errors_total',
    help: 'Batches the store refused or failed to append; the runs went on without.',
    labelNames: ['store'],
    registers: this.#registers,
  });
  readonly takeovers = new Counter({
    name: 'holdfast_takeovers_total',
    help: 'Runs of another replica taken over, or attempts at it.',
    labelNames: ['outcome'],
    registers: this.#registers,
  });
  readonly salvagedRuns = new Counter({
    name: 'holdfast_salvaged_runs_total',
    help: 'Orphaned runs that were finalised as partial.',
    labelNames: ['status'],
    registers: this.#registers,
  });
  readonly tokens = new Counter({
    name: 'holdfast_tokens_total',
    help: 'Tokens as reported by providers; kind="repaid" were paid for twice because of a recovery.',
    labelNames: ['kind'],
    registers: this.#registers,
  });
  readonly clientDisconnects = new Counter({
    name: 'holdfast_client_disconnects_total',
    help: 'Clients that left, or were cut off for taking nothing, before their run ended.',
    registers: this.#registers,
  });
  readonly malformedEvents = new Counter({
    name: 'holdfast_malformed_events_total',
    help: 'Events of a provider that could not be understood and were skipped.',
    labelNames: ['upstream'],
    registers: this.#registers,
  });

  readonly targetState = new Gauge({
    name: 'holdfast_target_state',
    help: 'Circuit breakers of targets: 1 for the state that one is in, 0 for the others.',
    labelNames: ['upstream', 'model', 'state'],
    registers: this.#registers,
    collect: () => this.#readTargets(),
  });
  readonly targetTransitions = new Counter({
    name: 'holdfast_target_transitions_total',
    help: 'Circuit breakers of targets that opened, for the first time or again, or closed.',
    labelNames: ['upstream', 'model', 'state'],
    registers: this.#registers,
  });

  constructor() {
    collectDefaultMetrics({ register: this.registry });
  }

  #readTargets(): void {
    for (const { upstream, model, state } of this.targets()) {
      for (const each of BREAKER_STATES)
        this.targetState.set({ upstream, model, state: each }, Number(each === state));
    }
  }
}
