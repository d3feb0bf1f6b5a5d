import type { EventSourceMessage } from 'eventsource-parser';
import type { AttemptEnd } from '../../interrupts/classify.ts';
import { limitsFor } from '../../interrupts/clocks.ts';
import type { Phase } from '../../interrupts/interruption.ts';
import { type Delta, isUsage } from '../../plans/delta.ts';
import type { Splice } from '../../plans/splice.ts';
import { closedByFinish, parses } from '../../plans/tool-call.ts';
import { Attempt, type AttemptRequest } from '../upstream/attempt.ts';
import type { RunTarget } from '../upstream/target.ts';
import type { AnswerEvent, WireEvent, WireReader } from '../wires/common/wire.ts';
import { type Answer, type AttemptReport, PHASE_OF, type PlannedAttempt } from './context/attempt.ts';
import { ChunkGaps } from './context/chunk-gaps.ts';
import type { RunContext } from './context/run-context.ts';
import { HeldDocument } from './held-document.ts';
import type { RunState } from './run-state.ts';

/** After the finish reason only a usage report and `[DONE]` may follow, and some servers then stay silent. */
const FINISH_WAIT_MS = 2_000;
/** Maximum number of events kept after the finish reason. */
const AFTER_FINISH_MAX = 16;
/** With these reasons, a cut call is due to a limit of the model: another attempt would not help. */
const CUTTING_FINISHES: ReadonlySet<string> = new Set(['length', 'max_tokens', 'content_filter']);
/** Attempts that produce the answer from its beginning. */
const FROM_THE_TOP: ReadonlySet<PlannedAttempt['mode']> = new Set(['first', 'replay', 'restart']);
/**
 * Overhead is sampled once per this many batches, because reading the clock costs more than most of the measured work.
 */
const OVERHEAD_SAMPLE = 64;

/** Creates an attempt with the clocks of the run and its target. `hasStandIn`: another target can replace it. */
export function newAttempt(
  target: RunTarget,
  request: AttemptRequest,
  { run, left_ms, signal }: Pick<RunState, 'run' | 'left_ms' | 'signal'>,
  { configuration, transport, time }: RunContext,
  hasStandIn = false,
): Attempt {
  const { upstream, health } = target;
  const { thinks = false } = health ?? {};
  const { unstreamed = false, hedge } = run;
  const limits = limitsFor(
    { ...configuration.clocks, ...upstream.clocks },
    { hasStandIn, thinks, unstreamed, left_ms },
  );
  const { event_bytes } = configuration.limits;
  const sent = { ...request, query: upstream.query };
  return new Attempt(transport, sent, { clocks: { ...limits, hedge }, event_bytes }, time, signal);
}

/** Reads one attempt into the run, event by event, until the answer is complete or interrupted. */
export class AttemptReader {
  readonly #state: RunState;
  readonly #planned: PlannedAttempt;
  readonly #attempt: Attempt;
  readonly #context: RunContext;
  readonly #onAnswer: () => void;
  readonly #reader: WireReader;
  readonly #offset: number;
  /** The phase of the attempt's last content. */
  #phase: Phase = 'connect';
  /** Set once the answer is complete. */
  #ending: Answer | undefined;
  /** Set if the answer ended but is unusable. */
  #end: AttemptEnd | undefined;
  #held: HeldDocument | undefined;
  /** The last event with content. */
  #event: AnswerEvent | undefined;
  readonly #after: AnswerEvent[] = [];
  readonly #chunkGaps: ChunkGaps | undefined;
  #finishedChoices = 0;
  #batches = 0;
  /** Below this size, the transcript need not be measured again. */
  #unlimited_bytes = 0;
  /** When the current batch of events arrived. */
  #at_ms: number;

  /** `onAnswer` is called on the attempt's first content. */
  constructor(
    state: RunState,
    planned: PlannedAttempt,
    attempt: Attempt,
    context: RunContext,
    onAnswer: () => void,
  ) {
    this.#state = state;
    this.#planned = planned;
    this.#attempt = attempt;
    this.#context = context;
    this.#onAnswer = onAnswer;
    this.#reader = state.readerFor(planned);
    this.#offset = state.transcript.size;
    this.#held = state.run.unstreamed && HeldDocument.of(state);
    this.#at_ms = context.time.now();
    if (context.configuration.metrics.gen_ai) this.#chunkGaps = new ChunkGaps();
    const { ending } = planned;
    if (!ending) return;
    this.#after.push(...ending.after);
    this.#ending = { ...ending, after: this.#after, cutShort: false };
  }

  /** `source`: the source of events, if it isn't the attempt itself. */
  async run(source: Pick<Attempt, 'open' | 'read'> = this.#attempt): Promise<AttemptReport> {
    if (this.#ending) this.#attempt.finishWithin(FINISH_WAIT_MS);
    if (await source.open()) {
      this.#phase = 'first_token';
      await source.read(this.#take);
    }
    this.#complete();
    return this.report;
  }

  /** The state of the attempt, or its result once it is over. */
  get report(): AttemptReport {
    const { attempts, transcript } = this.#state;
    const { deltas, characters } = attempts.arrived;
    const start = FROM_THE_TOP.has(this.#planned.mode) ? 0 : this.#offset;
    const { samples = [], answer_id, resume_path, cancel_path, sealed } = this.#reader;
    const { end, silent_ms, refusal, headers } = this.#attempt;
    return {
      phase: this.#phase,
      ending: this.#ending,
      end: this.#end ?? end,
      added: transcript.size - this.#offset,
      position: deltas === 0 ? undefined : start + characters,
      silent_ms,
      refusal,
      samples: { events: samples, headers },
      usage: attempts.reported,
      chunk_gaps: this.#chunkGaps,
      answer_id,
      resume_path,
      cancel_path,
      sealed,
    };
  }

  readonly #take = (events: readonly EventSourceMessage[], at_ms: number): Promise<void> | undefined => {
    this.#at_ms = at_ms;
    for (const message of events) {
      const event = this.#reader.read(message);
      if (event.kind === 'answer') this.#takeAnswer(event);
      else this.#takeOther(event);
      if (this.#attempt.isOver) break;
    }
    // The last events of a complete answer leave in one write with its end.
    const isLast = this.#attempt.isDone && this.#isWhole();
    const blocked = isLast ? undefined : this.#state.output.flush();
    if (this.#batches++ % OVERHEAD_SAMPLE === 0) {
      const { metrics, time } = this.#context;
      metrics.overhead.observe((time.now() - at_ms) / 1000);
    }
    return blocked && this.#hold(blocked);
  };

  /** Pauses the clocks while the client or the store is slower than the provider. */
  async #hold(blocked: Promise<void>): Promise<void> {
    const resume = this.#attempt.pauseClocks();
    await blocked;
    resume();
  }

  /** The answer has ended, and {@link #complete} has nothing left to check. */
  #isWhole(): boolean {
    const { transcript, facts } = this.#state;
    return !!this.#ending && !this.#held && !transcript.hasOpenCalls && !facts.expectsJson;
  }

  /** Handles events that aren't part of the answer. */
  #takeOther(event: Exclude<WireEvent, AnswerEvent>): void {
    switch (event.kind) {
      case 'done':
        this.#attempt.done();
        return;
      case 'nothing':
        return;
      case 'malformed':
        this.#context.metrics.malformedEvents.inc({ upstream: this.#planned.target.name });
        this.#interrupt({ kind: 'malformed_event' });
        return;
      case 'error_event':
      case 'bad_finish':
        this.#interrupt(event);
    }
  }

  /** After the finish reason the answer is complete, whatever follows. */
  #interrupt(end: AttemptEnd): void {
    if (this.#ending) this.#ending = { ...this.#ending, cutShort: true };
    else this.#attempt.stop(end);
  }

  #takeAnswer(event: AnswerEvent): void {
    if (this.#state.facts.choices > 1 || event.manyChoices) this.#forward(event);
    else if (this.#ending) this.#takeAfterFinish(event);
    else if (!event.aside || this.#interject(event)) this.#takeContent(event);
    if (event.last) this.#attempt.done();
  }

  #takeContent(event: AnswerEvent): void {
    const { deltas } = event;
    this.#event = event;
    if (event.works) this.#noteWork();
    const reason = this.#note(deltas);
    if (event.progress) this.#attempt.progressed(event.progress === 'thinking');
    if (reason === undefined) {
      this.#accept(deltas, event, true);
      return;
    }
    // The finish chunk is sent at the end, with everything that belongs there.
    this.#accept(deltas.filter(isContent), event, false);
    if (!this.#attempt.isOver) this.#finish(reason, event);
  }

  /** Keeps reports such as usage and filter results, but no pings and no second answer. */
  #takeAfterFinish(event: AnswerEvent): void {
    const isReport = !event.ping && event.deltas.every((delta) => !isContent(delta));
    if (!isReport) return;
    this.#note(event.deltas);
    if (this.#after.length < AFTER_FINISH_MAX) this.#after.push(event);
    // The usage report is kept even if the buffer is full.
    else if (event.deltas.some(isUsage)) this.#after[AFTER_FINISH_MAX - 1] = event;
  }

  /** Removes what the client has already seen from the deltas, and adds the rest to the run. */
  #accept(told: readonly Delta[], event: AnswerEvent, intact: boolean): void {
    const { run_bytes } = this.#context.configuration.limits;
    if (this.#held) {
      this.#held.hold(told, event, intact);
      if (this.#held.bytes > run_bytes) this.#showHeld();
      else this.#count(this.#held.bytes);
      return;
    }
    const { splice } = this.#planned;
    const joined = splice ? splice.join(told, event.aside === true) : told;
    if (!joined) {
      this.#finish('length');
      return;
    }
    const isWhole = intact && joined === told;
    if (joined.length > 0 || isWhole) this.#state.accept(joined, event, isWhole, this.#at_ms);
    if (splice && !this.#stopRejected(splice) && splice.stopReason) this.#finish(splice.stopReason);
    if (this.#state.transcript.held_bytes_max > this.#unlimited_bytes) this.#limit();
  }

  #limit(): void {
    const { run, transcript, output } = this.#state;
    const { run_bytes } = this.#context.configuration.limits;
    if (transcript.exceeds(run_bytes - output.forwarded_bytes))
      this.#attempt.stop({ kind: 'limit', limit: 'limits.run_bytes' });
    else this.#count(transcript.held_bytes_max + output.forwarded_bytes);
    const counted_bytes = run.memory?.said_bytes ?? Number.POSITIVE_INFINITY;
    this.#unlimited_bytes = Math.min(run_bytes, counted_bytes) - output.forwarded_bytes;
  }

  /** `held_bytes`: memory held by the answer so far. */
  #count(held_bytes: number): void {
    const { run, transcript } = this.#state;
    if (!run.memory || held_bytes <= run.memory.said_bytes) return;
    transcript.compact();
    if (!run.memory.grow(held_bytes)) this.#attempt.stop({ kind: 'limit', limit: 'limits.memory_bytes' });
  }

  #showHeld(): void {
    const held = this.#held;
    this.#held = undefined;
    held?.show((deltas, event, intact) => this.#accept(deltas, event, intact));
  }

  /** Provider tools separate the text before them from the text after. False if the text before does not join. */
  #interject(event: AnswerEvent): boolean {
    this.#showHeld();
    const { splice } = this.#planned;
    if (!splice || splice.isOpen) return true;
    const held = splice.interject();
    if (this.#event && held.length > 0) this.#state.accept(held, this.#event, false, this.#at_ms);
    if (!this.#stopRejected(splice)) return true;
    // The text before the tool does not join and is not shown, but the run must know that a tool may have run.
    if (event.deltas.length > 0) this.#state.accept(event.deltas, event, true, this.#at_ms);
    return false;
  }

  /** Stops the attempt and returns true if the seam has rejected it. */
  #stopRejected({ rejection: reason }: Splice): boolean {
    if (reason === undefined) return false;
    this.#attempt.stop({ kind: 'seam_rejected', reason });
    return true;
  }

  /** Updates the phase and the clocks. Returns the finish reason, if it arrived. */
  #note(deltas: readonly Delta[]): string | undefined {
    const wasSilent = this.#phase === 'first_token';
    let saysSomething = false;
    let reason: string | undefined;
    for (const delta of deltas) {
      this.#state.attempts.arrive(delta);
      if (delta.kind === 'finish') reason ??= delta.reason;
      const phase = PHASE_OF[delta.kind];
      if (phase === undefined) continue;
      this.#phase = phase;
      saysSomething = true;
      this.#attempt.progressed(delta.kind === 'reasoning');
    }
    if (saysSomething) this.#chunkGaps?.came(this.#at_ms);
    if (wasSilent && this.#phase !== 'first_token') this.#onAnswer();
    return reason;
  }

  /** A model that is known to be working gets the same time as one that streams its reasoning. */
  #noteWork(): void {
    if (this.#phase === 'first_token') {
      this.#phase = 'reasoning';
      this.#onAnswer();
    }
    this.#attempt.progressed(true);
  }

  #finish(reason: string, event?: AnswerEvent): void {
    const { splice } = this.#planned;
    const held = splice?.end() ?? [];
    const carrier = event ?? this.#event;
    if (carrier && held.length > 0) this.#state.accept(held, carrier, false, this.#at_ms);
    if (splice && this.#stopRejected(splice)) return;
    const stop_sequence = event ? undefined : splice?.stopSequence;
    this.#ending = {
      reason,
      ...(event && { finish: event }),
      after: this.#after,
      ...(stop_sequence !== undefined && { stop_sequence }),
    };
    if (event) this.#attempt.finishWithin(FINISH_WAIT_MS);
    else this.#attempt.stop({ kind: 'eof', done: false });
  }

  /** Requests that are never spliced pass unchanged; only their end is observed. */
  #forward(event: AnswerEvent): void {
    this.#event = event;
    this.#note(event.deltas);
    this.#finishedChoices += event.deltas.filter(({ kind }) => kind === 'finish').length;
    this.#state.forward(event);
    this.#limit();
    if (this.#attempt.isOver) return;
    if (this.#finishedChoices >= this.#state.facts.choices) {
      this.#ending = { reason: 'stop', forwarded: true, after: [] };
      this.#attempt.finishWithin(FINISH_WAIT_MS);
    }
  }

  /** Checks whether the answer is complete, now that the attempt has ended. */
  #complete(): void {
    const ending = this.#ending;
    const state = this.#state;
    const wasHeld = this.#held !== undefined;
    if (ending?.reason === 'stop' && this.#held?.isUsable === false) {
      state.keepSpare(() => {
        this.#showHeld();
        return ending;
      });
      this.#unusable('document');
      return;
    }
    // A partial answer is worth less than a complete one that does not parse.
    if ((ending || !state.hasSpare) && !state.signal.aborted) this.#showHeld();
    if (!ending || ending.forwarded) return;
    if (!this.#attempt.isDone) this.#ending = { ...ending, cutShort: true };
    const unannounced = ending.reason === 'stop' ? state.facts.schemas : undefined;
    const { closed, broken } = closedByFinish(state.transcript, unannounced);
    if (this.#event && closed.length > 0) state.accept(closed, this.#event, false, this.#at_ms);
    if (broken.length > 0 && CUTTING_FINISHES.has(ending.reason)) state.cancel(broken, ending.reason);
    else if (broken.length > 0) this.#unusable('arguments');
    const isJoined = this.#planned.splice !== undefined && !wasHeld;
    const mustParse = state.facts.expectsJson && isJoined && ending.reason === 'stop';
    if (mustParse && !parses(state.transcript.text)) this.#unusable('document');
  }

  #unusable(what: 'arguments' | 'document'): void {
    this.#ending = undefined;
    this.#end = { kind: 'unusable', what };
  }
}

const isContent = ({ kind }: Delta): boolean => kind !== 'finish' && kind !== 'usage';
