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

/** Batches of events that say nothing, kept from before the first one that says something. */
const SIGNS_OF_LIFE_MAX = 16;

/**
 * The hedges of one run, one at a time: while an attempt is silent, another target is asked for what is left of the answer.
 * If it speaks first, the silent attempt is interrupted, and the hedge carries out the plan that follows; if the attempt
 * speaks again, the hedge is cancelled.
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

  /** From now on the attempt is hedged when it is silent. `report`: how it is doing. */
  watch(attempt: Attempt, planned: PlannedAttempt, report: () => AttemptReport): void {
    attempt.standIn = {
      begin: () => this.#begin(attempt, planned, report()),
      end: () => this.release(),
    };
  }

  /** The hedge under way, where it carries out what is decided now; any other one is cancelled. */
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

  /** Cancels the hedge under way, if there is one. */
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

  /** One that is still in the race has failed. That is no failure of the run, which waits for the attempt under way as before. */
  #end(hedge: Hedge): void {
    // A run that is not wanted any more ends both.
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

/** An attempt that is made before it is needed. What its provider sends is held until the attempt is taken. */
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
    // It only finds out whether something is said: the numbers that the run has for calls are not used up.
    let calls = 0;
    this.#reader = run.wire.reader(() => calls++, run.request, asksForRest(mode), isInBackground);
  }

  get phase(): 'connect' | 'first_token' {
    return this.#hasAnswered ? 'first_token' : 'connect';
  }

  /** `onSpeech`: it has said something. `onEnd`: it is over, with an answer or without. */
  begin({ onSpeech, onEnd }: { readonly onSpeech: () => void; readonly onEnd: () => void }): void {
    this.#onSpeech = onSpeech;
    this.#opened = this.attempt.open();
    this.#ended = this.#read();
    this.#ended.then(onEnd, onEnd);
  }

  /** It is an attempt of the run from now on: how it ends is for its reader. */
  take(): void {
    this.inquiry?.end();
  }

  /** It is not needed. */
  cancel(): void {
    this.inquiry?.end();
    this.attempt.stop({ kind: 'broken', code: 'CANCELLED' });
    this.#wanted.resolve(() => undefined);
  }

  /** As {@link Attempt.open}. */
  open(): Promise<boolean> {
    return this.#opened;
  }

  /** As {@link Attempt.read}: first what was held. */
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

  /** The provider waits until the attempt is read. */
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

  /** True if any of the events says something. One that ends the attempt before that, ends the hedge. */
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
