import { Audience } from './audience.ts';
import { fetching, openai, resuming, resumingAt } from './clients.ts';
import type { Slot } from './haproxy.ts';
import { Newcomers } from './newcomers.ts';
import { checkLogs, type LogsFound } from './run-logs.ts';
import type { Stage, StageOptions } from './stage.ts';
import { type Departure, isOvertaken, type Tally, tally } from './verdict.ts';

export interface SceneOptions extends StageOptions {
  readonly streams: number;
  readonly answer_ms_min: number;
  readonly answer_ms_max: number;
  readonly event_ms: number;
  readonly arrival_ms: number;
  readonly newcomer_interval_ms: number;
  /** Receives a line about each step. */
  readonly report: (what: string) => void;
}

export interface Findings {
  readonly clients: ReadonlyMap<string, Tally>;
  /** The short requests during the rehearsal, and those that outlasted the drain of their replica. */
  readonly newcomers: { readonly count: number; readonly overtaken: number };
  /** The number of open streams each time a replica was ordered to stop. */
  readonly open: readonly number[];
  readonly logs: LogsFound;
  /**
   * The balancer's counters: answers with a status of 500 or more, and connections that it retried or sent to another
   * replica.
   */
  readonly balancer: { readonly errors: number; readonly retries: number; readonly redispatches: number };
  readonly duration_ms: number;
  /** Empty if everything worked as promised. */
  readonly faults: readonly string[];
}

/** Clients without the wrapper, which can't survive the end of their connection. */
const STOCK = ['openai', 'fetch'];
/** In addition to the time that orphans wait for their clients. */
const SALVAGE_MAX_MS = 15_000;

/** The clients while replicas come and go, and the outcome of their requests. */
export class Scene {
  readonly #stage: Stage;
  readonly #options: SceneOptions;
  readonly #audience: Audience;
  readonly #newcomers: Newcomers;
  readonly #departures: Departure[] = [];
  readonly #open: number[] = [];
  readonly #faults: string[] = [];
  readonly #started_ms = performance.now();

  /** Starts all clients. */
  constructor(stage: Stage, options: SceneOptions) {
    const { deployment, haproxy, slots } = stage;
    this.#stage = stage;
    this.#options = options;
    const endpoints = slots.map(({ port }) => `http://127.0.0.1:${port}`);
    const clients = [
      { kind: 'holdfast/client', ask: resuming(haproxy.url) },
      { kind: 'openai', ask: openai(haproxy.url) },
      { kind: 'holdfast/client, told the replicas', ask: resumingAt(haproxy.url, endpoints) },
      { kind: 'fetch', ask: fetching(haproxy.url) },
    ];
    this.#newcomers = new Newcomers(deployment, haproxy.url, options.newcomer_interval_ms);
    this.#audience = new Audience({ ...options, deployment, clients });
  }

  /** Resolves once each member of the audience has begun its first stream. */
  async seated(): Promise<void> {
    await this.#audience.seated();
    this.#options.report(`${this.#audience.open} streams are open`);
  }

  /** Call this immediately before stopping a replica. */
  leaves({ name }: Slot, grace_ms: number): void {
    this.#departures.push({ slot: name, told_ms: performance.now(), grace_ms });
    this.#open.push(this.#audience.open);
    this.#options.report(`${name} is told to go, ${this.#audience.open} streams are open`);
  }

  /** Call this once the replica has ended. */
  left({ name }: Slot, how: string): void {
    const { told_ms = Number.NaN } = this.#departures.at(-1) ?? {};
    const took_s = ((performance.now() - told_ms) / 1000).toFixed(1);
    this.#options.report(`${name} ${how} after ${took_s} s`);
  }

  wentWrong(fault: string): void {
    this.#faults.push(fault);
  }

  /** Waits for the last answers and for the end of all runs. */
  async findings(): Promise<Findings> {
    const { report, salvage_after_ms, drain_delay_ms } = this.#options;
    const { haproxy, redis } = this.#stage;
    report('the last answers are told');
    await this.#audience.leave();
    await this.#newcomers.stop();
    report('orphans are looked for');
    const logs = await checkLogs(redis.admin, salvage_after_ms + SALVAGE_MAX_MS);

    const clients = tally(this.#audience.answers, this.#departures, STOCK);
    const { count, refusals } = this.#newcomers;
    const late = refusals.filter((refusal) => !isOvertaken(refusal, this.#departures, drain_delay_ms));
    const overtaken = refusals.length - late.length;
    const balancer = {
      errors: await haproxy.figure('api/FRONTEND', 'hrsp_5xx'),
      retries: await haproxy.figure('holdfast/BACKEND', 'wretr'),
      redispatches: await haproxy.figure('holdfast/BACKEND', 'wredis'),
    };
    const faults = [
      ...this.#faults,
      ...late.map(({ fault }) => fault),
      ...(balancer.errors > overtaken ? [`the balancer has sent ${balancer.errors} answers with a 5xx`] : []),
      ...[...clients.values()].flatMap((each) => each.faults),
      ...logs.faults,
    ];
    return {
      clients,
      newcomers: { count, overtaken },
      open: this.#open,
      logs,
      balancer,
      duration_ms: performance.now() - this.#started_ms,
      faults,
    };
  }
}
