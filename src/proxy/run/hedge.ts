import type { EventSourceMessage } from 'eventsource-parser';
import { classify } from '../../interrupts/classify.ts';
import { withoutMessage } from '../../interrupts/interruption.ts';
import type { HedgeBudget } from '../../plans/hedge-budget.ts';
import { asksForRest } from '../../plans/seam/mode.ts';
import type { Attempt, TakeEvents } from '../upstream/attempt.ts';
import type { ModelHedge } from '../upstream/route-table.ts';
import type { HealthProbe } from '../upstream/target-health.ts';
import type { WireEvent, WireReader } from '../wires/common/wire.ts';
import { newAttempt } from './attempt-reader.ts';
import { type AttemptReport, PHASE_OF, type PlannedAttempt } from './context/attempt.ts';
import type { RunContext } from './context/run-context.ts';
import { type AttemptPlanner, type ForeseenAttempt, OUTRUN, type Remedy } from './next-attempt/planner.ts';
import type { RunState } from './run-state.ts';

/** Maximum number of batches kept before the first content. */
const SIGNS_OF_LIFE_MAX = 16;

/**
 * The hedges of one run, one at a time. While an attempt is silent, another target is asked for the rest of the answer.
 * If the hedge answers first, the silent attempt is interrupted and the hedge carries out the plan for that
 * interruption; if the attempt continues, the hedge is cancelled.
 */
export class Hedging {
  readonly #budget: HedgeBudget;
  readonly #state: RunState;
  readonly #planner: () => AttemptPlanner;
  readonly #context: RunContext;
  #hedge: Hedge | undefined;

  constructor({ budget }: ModelHedge, state: RunState, planner: () => AttemptPlanner, context: RunContext) {
    this.#budget = budget;
    budget.earn();
    this.#state = state;
    this.#planner = planner;
    this.#context = context;
  }

  /** Hedges the attempt whenever it is silent. `report`: returns its current state. */
  watch(attempt: Attempt, planned: PlannedAttempt, report: () => AttemptReport): void {
    attempt.standIn = {
      begin: () => this.#begin(attempt, planned, report()),
      end: () => this.release(),
    };
  }

  /** The running hedge, if it fits the chosen remedy; otherwise cancels it. */
  take(remedy: Remedy): Hedge | undefined {
    const hedge = this.#hedge;
    if (!hedge || !this.#planner().fulfil(hedge.foreseen, remedy)) {
      this.release();
      return undefined;
    }
    this.#hedge = undefined;
    hedge.take();
    this.#context.metrics.hedges.inc({ outcome: 'won' });
    return hedge;
  }

  /** Cancels the running hedge, if any. */
  release(): void {
    if (!this.#hedge) return;
    this.#hedge.cancel();
    this.#hedge = undefined;
    this.#context.metrics.hedges.inc({ outcome: 'lost' });
  }

  #begin(attempt: Attempt, planned: PlannedAttempt, report: AttemptReport): void {
    const { metrics, log } = this.#context;
    const planner = this.#planner();
    const foreseen = planner.foresee(planned, report);
    if (!foreseen) return;
    if (!this.#budget.spend()) {
      metrics.hedges.inc({ outcome: 'denied' });
      return;
    }
    const { target, mode, request } = foreseen.planned;
    const { id: run } = this.#state.run;
    log.info({ run, silent: planned.target.name, upstream: target.name, mode }, 'hedged');
    const inquiry = planner.targets.askBeside(target);
    const made = newAttempt(target, request, this.#state, this.#context, true);
    const hedge = new Hedge(foreseen, made, inquiry, this.#state);
    this.#hedge = hedge;
    hedge.begin({
      onSpeech: () => attempt.stop(OUTRUN),
      onEnd: () => this.#end(hedge),
    });
  }

  /** A failed hedge is no failure of the run, which keeps waiting for its attempt. */
  #end(hedge: Hedge): void {
    // An aborted run ends both.
    if (this.#hedge !== hedge || this.#state.signal.aborted) return;
    const { metrics, log, time } = this.#context;
    const { run } = this.#state;
    const { attempt, foreseen, phase } = hedge;
    const { target } = foreseen.planned;
    this.#hedge = undefined;
    metrics.hedges.inc({ outcome: 'failed' });
    const interruption = classify(attempt.end, phase, time.wall());
    log.warn({ run: run.id, ...withoutMessage(interruption), upstream: target.name }, 'hedge failed');
    this.#planner().targets.failedBeside(target, hedge.inquiry, interruption, attempt.silent_ms);
    hedge.cancel();
  }
}

/** An attempt made before it is needed. Its events are held until the attempt is taken. */
export class Hedge {
  readonly foreseen: ForeseenAttempt;
  readonly attempt: Attempt;
  readonly inquiry: HealthProbe | undefined;
  readonly #reader: WireReader;
  readonly #held: { readonly events: readonly EventSourceMessage[]; readonly at_ms: number }[] = [];
  readonly #wanted = Promise.withResolvers<TakeEvents>();
  #take: TakeEvents | undefined;
  #opened: Promise<boolean> = Promise.resolve(false);
  #ended: Promise<void> = Promise.resolve();
  #onSpeech: () => void = () => {};
  #hasSpoken = false;
  #hasAnswered = false;

  constructor(
    foreseen: ForeseenAttempt,
    attempt: Attempt,
    inquiry: HealthProbe | undefined,
    { run }: Pick<RunState, 'run'>,
  ) {
    const { mode, isInBackground } = foreseen.planned;
    this.foreseen = foreseen;
    this.attempt = attempt;
    this.inquiry = inquiry;
    // This reader only detects content, so it must not use up the run's call numbers.
    let calls = 0;
    this.#reader = run.wire.reader(() => calls++, run.request, asksForRest(mode), isInBackground);
  }

  get phase(): 'connect' | 'first_token' {
    return this.#hasAnswered ? 'first_token' : 'connect';
  }

  /** `onSpeech`: called on the first content. `onEnd`: called when the attempt is over, with or without an answer. */
  begin({ onSpeech, onEnd }: { readonly onSpeech: () => void; readonly onEnd: () => void }): void {
    this.#onSpeech = onSpeech;
    this.#opened = this.attempt.open();
    this.#ended = this.#read();
    this.#ended.then(onEnd, onEnd);
  }

  /** Makes it an attempt of the run, whose reader handles its end. */
  take(): void {
    this.inquiry?.end();
  }

  /** Stops the hedge, which is not needed. */
  cancel(): void {
    this.inquiry?.end();
    this.attempt.stop({ kind: 'broken', code: 'CANCELLED' });
    this.#wanted.resolve(() => undefined);
  }

  /** Like {@link Attempt.open}. */
  open(): Promise<boolean> {
    return this.#opened;
  }

  /** Like {@link Attempt.read}, starting with the held events. */
  async read(take: TakeEvents): Promise<void> {
    this.#wanted.resolve(take);
    if (!this.#hasSpoken) await this.#replay(take);
    this.#take = take;
    await this.#ended;
  }

  async #read(): Promise<void> {
    if (!(await this.#opened)) return;
    this.#hasAnswered = true;
    await this.attempt.read(this.#receive);
  }

  readonly #receive: TakeEvents = (events, at_ms) => {
    if (this.#take) return this.#take(events, at_ms);
    const speaks = this.#listen(events);
    if (this.attempt.isOver) return undefined;
    if (events.length > 0 && (speaks || this.#held.length < SIGNS_OF_LIFE_MAX))
      this.#held.push({ events, at_ms });
    if (!speaks) return undefined;
    this.#hasSpoken = true;
    this.#onSpeech();
    return this.#handOver();
  };

  /** Holds back the provider until the attempt is read. */
  async #handOver(): Promise<void> {
    const resumeClocks = this.attempt.pauseClocks();
    const take = await this.#wanted.promise;
    resumeClocks();
    await this.#replay(take);
  }

  async #replay(take: TakeEvents): Promise<void> {
    for (let held = this.#held.shift(); held && !this.attempt.isOver; held = this.#held.shift())
      await take(held.events, held.at_ms);
  }

  /** True if any of the events has content. An event that ends the attempt before that also ends the hedge. */
  #listen(events: readonly EventSourceMessage[]): boolean {
    for (const message of events) {
      const event = this.#reader.read(message);
      if (saysSomething(event)) return true;
      if (event.kind === 'done') this.attempt.done();
      else if (event.kind === 'error_event' || event.kind === 'bad_finish') this.attempt.stop(event);
      else if (event.kind === 'malformed') this.attempt.stop({ kind: 'malformed_event' });
      if (this.attempt.isOver) return false;
    }
    return false;
  }
}

function saysSomething(event: WireEvent): boolean {
  if (event.kind !== 'answer') return false;
  const says = event.deltas.some(({ kind }) => PHASE_OF[kind] !== undefined || kind === 'finish');
  return says || event.works === true || event.progress !== undefined;
}
