import type { JournalEnd } from '../../checkpoint/store.ts';
import { inTime } from '../../lib/time.ts';
import type { Policy } from '../../plans/decide.ts';
import { cancelDelta, type Delta, REPEATED, type Segment } from '../../plans/delta.ts';
import { asksForRest } from '../../plans/seam/mode.ts';
import { closedBefore, isRepeated, type ToolCall } from '../../plans/tool-call.ts';
import { Transcript } from '../../plans/transcript.ts';
import type { Client } from '../downstream/client.ts';
import { eventId } from '../downstream/event-frame.ts';
import type { AttemptRequest } from '../upstream/attempt.ts';
import type { RequestFacts } from '../wires/common/request.ts';
import type { AnswerEvent, ForwardedCalls, WireReader } from '../wires/common/wire.ts';
import type { Answer, PlannedAttempt } from './context/attempt.ts';
import { HAND_OVER, type Resumption, type Run } from './context/run.ts';
import type { RunContext } from './context/run-context.ts';
import type { RunObservation } from './context/run-observer.ts';
import { RunJournal } from './journal.ts';
import { HeldCallNotes, heldIn, unfinishedIn } from './notices/held-calls.ts';
import { OutputGate } from './output-gate.ts';
import { regained } from './regained.ts';
import { type RestoredRun, restoredRun } from './restored-run.ts';
import { RunAttempts } from './run-attempts.ts';

/** How long the end of a run waits for the store. */
const PERSIST_WAIT_MAX_MS = 1000;

/** Reason of {@link RunState.signal} if another replica took the run over, or may have. */
export const SUPERSEDED = Symbol('superseded');

/**
 * The state of one run: its content (transcript), what was shown (output), what was recorded (journal), and its
 * attempts. The relay decides; this class carries the decisions out.
 */
export class RunState {
  readonly run: Run;
  readonly facts: RequestFacts;
  readonly policy: Policy;
  readonly transcript: Transcript;
  readonly output: OutputGate;
  readonly attempts: RunAttempts;
  /** The run's state from earlier replicas. */
  readonly restored: RestoredRun | undefined;
  /** Aborts when this replica must stop: no client waits, {@link SUPERSEDED}, or `HAND_OVER`. */
  readonly signal: AbortSignal;
  /** Observes the run; undefined without observers. */
  readonly watch: RunObservation | undefined;
  readonly #context: RunContext;
  readonly #journal: RunJournal;
  readonly #over = new AbortController();
  /**
   * Created with the first call. Unused if calls are shown as they arrive, because the journal then has their
   * beginning.
   */
  #held: HeldCallNotes | undefined;
  #calls = 0;
  /** The number of calls that repeated a settled one. */
  #repeated = 0;
  /** The last event with content, which stands in for output without an event of its own. */
  #event: AnswerEvent | undefined;
  #reader: WireReader | undefined;
  /** The current attempt's segment, until its first content. */
  #segment: Segment | undefined;
  #spare: { readonly show: () => Answer; readonly segment: Segment | undefined } | undefined;
  #isSpare: boolean = false;

  /** Assigns the run's indices for tool calls. */
  readonly nextCall = (): number => this.#calls++;

  constructor(
    run: Run,
    client: Client,
    context: RunContext,
    watch: RunObservation | undefined,
    resumption?: Resumption,
  ) {
    const { recovery } = context.configuration;
    this.run = run;
    this.watch = watch;
    this.#context = context;
    this.facts = run.wire.facts(run.request);
    const { schemas, spliceable } = this.facts;
    const { failsWhenFull = false } = run;
    const isLive = run.events === 'live';
    this.policy = { ...recovery, schemas, spliceable, failsWhenFull, isLive };
    this.signal = this.#over.signal;
    this.restored = resumption && restoredRun(resumption, run, this.facts, this.policy);
    this.transcript = this.restored?.transcript ?? new Transcript();
    this.#calls = this.transcript.toolCalls.length;
    this.#event = this.restored?.event;
    this.attempts = new RunAttempts(run, context, watch, this.restored);
    this.#journal = new RunJournal(run, context, () => void this.#onStale(), resumption);
    for (const event of this.restored?.healed ?? []) this.#journal.record(event);
    this.output = new OutputGate({
      wire: run.wire,
      client,
      time: context.time,
      events: run.events,
      facts: this.facts,
      headers: () => ({
        'holdfast-run-id': run.id,
        'holdfast-attempts': String(this.attempts.count),
        'holdfast-upstream': this.attempts.upstream,
        ...(run.step && { 'holdfast-step': String(run.step.number) }),
        ...(this.#isSpare && { 'holdfast-warning': 'unparsable_document' }),
      }),
      journal: this.#journal,
      checkpoint: context.configuration.checkpoint,
      storeFirst: run.resumable,
      pauses: context.pauses,
      onUnproven: () => {
        context.log.warn(
          { run: run.id },
          'withdrawn: the store does not confirm that this replica holds the run',
        );
        this.#stop(SUPERSEDED);
      },
      keepalive_ms: context.configuration.delivery.keepalive_ms,
      ...(run.resumable && { idOf: (seq: number) => eventId(run.id, this.#journal.epoch, seq) }),
      ...(this.restored && { restored: this.restored }),
    });
    if (resumption?.held) this.#noteHeldCalls(true);
    // AbortSignal.any would take another kilobyte per run.
    const end = () => this.#stop(run.signal.reason);
    if (run.signal.aborted) end();
    else run.signal.addEventListener('abort', end, { once: true });
  }

  /** True if another replica has the run, or will get it, so this one must not end it. */
  get isWithdrawn(): boolean {
    const { aborted, reason } = this.signal;
    return aborted && (reason === SUPERSEDED || reason === HAND_OVER) && !this.output.ended;
  }

  /** When the run began on any replica. */
  get created_at_ms(): number {
    return this.#journal.created_at_ms;
  }

  /** See {@link RunAttempts.interrupted_at_ms}. */
  get interrupted_at_ms(): number {
    return this.attempts.interrupted_at_ms;
  }

  /** Fields for the log entry at the end of the run: names, sizes and times, but no content. */
  get account(): Readonly<Record<string, unknown>> {
    const { model } = this.run.request;
    return { model, characters: this.transcript.size, ...this.attempts.account };
  }

  /** What remains of the client's `max_tokens`. */
  get tokens_left(): number {
    return this.facts.max_tokens - this.attempts.delivered_tokens;
  }

  /** The transcript's reasoning without the held part, which is shown only at the end of its block. */
  get shown_reasoning(): string {
    const { reasoning } = this.transcript;
    return reasoning.slice(0, reasoning.length - this.output.held_reasoning);
  }

  /** See {@link unfinishedIn}. */
  get unfinishedCalls(): readonly ToolCall[] {
    return unfinishedIn(this.transcript, this.restored?.unfinished);
  }

  /** Calls of an answer with several choices, from all replicas. */
  get forwardedCalls(): ForwardedCalls {
    const { settled, unfinished } = this.output.forwardedCalls;
    return { settled: [...(this.restored?.choiceCalls ?? []), ...settled], unfinished };
  }

  /** Time left until the run's deadline; infinite without one. */
  get left_ms(): number {
    const { configuration, time } = this.#context;
    const { deadline_ms = Number.POSITIVE_INFINITY } = configuration.recovery;
    const allowed_ms = Math.min(deadline_ms, this.run.deadline_ms ?? Number.POSITIVE_INFINITY);
    return allowed_ms - (time.wall() - this.created_at_ms);
  }

  /** Begins an attempt, and returns its request with additional headers. */
  beginAttempt(planned: PlannedAttempt): AttemptRequest {
    const { mode, request } = planned;
    if (this.attempts.count > 0 && mode !== 'resume') this.#restart();
    const segment = this.attempts.begin(planned);
    this.#segment = segment;
    const asked_model = segment.model ?? this.run.request.model;
    const headers = this.watch?.attempt({ ...segment, asked_model });
    return headers ? { ...request, headers: { ...request.headers, ...headers } } : request;
  }

  /** The reader for an attempt's events. An attempt that resumes an answer continues with the previous reader. */
  readerFor({ mode, isInBackground }: PlannedAttempt): WireReader {
    const { wire, request } = this.run;
    if (mode !== 'resume' || !this.#reader)
      this.#reader = wire.reader(this.nextCall, request, asksForRest(mode), isInBackground);
    return this.#reader;
  }

  /**
   * Adds `deltas` to the run and shows them. `intact`: they are the complete content of the event. `at_ms`: their
   * arrival on the monotonic clock.
   */
  accept(deltas: readonly Delta[], event: AnswerEvent, intact: boolean, at_ms: number): void {
    this.#event = event;
    if (deltas.length > 0 && this.#segment) this.#beginSegment(this.#segment);
    const folded = this.#fold(deltas);
    const recovered = deltas.length > 0 ? this.attempts.show(at_ms) : undefined;
    if (recovered) {
      this.watch?.recovered(recovered);
      this.output.advise(recovered);
    }
    this.output.show(folded, event, intact && folded === deltas);
  }

  /** Forwards an event of a request that is never spliced. */
  forward(event: AnswerEvent): void {
    for (const delta of event.deltas) if (delta.kind === 'text') this.transcript.fold(delta);
    if (this.#segment) this.#beginSegment(this.#segment);
    this.output.forward(event);
  }

  /** Closes calls whose arguments prove them complete. */
  settle(calls: readonly ToolCall[]): void {
    const closes = calls.map(({ index }): Delta => ({ kind: 'tool_close', index, proof: 1 }));
    // The calls belong to the attempt that produced them; later attempts added and recovered nothing.
    if (this.#event) this.output.show(this.#fold(closes), this.#event, false);
  }

  /** Announces that the answer restarts, if the client has seen any of it. */
  announceReset(reason: string): void {
    const { reasoning, text } = this.transcript;
    if (reasoning === '' && text === '') return;
    const scope = reasoning === '' ? 'text' : text === '' ? 'reasoning' : 'all';
    this.output.advise({ type: 'StreamReset', reason, attempt: this.attempts.count, scope });
  }

  /** Gives up cut calls, which are dropped or announced as cancelled. */
  cancel(calls: readonly ToolCall[], reason: string): void {
    for (const { index } of calls) {
      const cancel = cancelDelta(index, reason);
      this.transcript.fold(cancel);
      this.attempts.keep(cancel);
    }
    this.output.cancelCalls(
      calls.map(({ index }) => index),
      reason,
      this.attempts.count,
    );
  }

  /** Stores everything said so far, sent or not. Resolves even if the store fails or is slow. */
  async persist(): Promise<void> {
    await inTime(this.#journal.stored(), this.#context.time, PERSIST_WAIT_MAX_MS);
  }

  get hasSpare(): boolean {
    return this.#spare !== undefined;
  }

  /** Keeps a complete answer that doesn't match the requested format and was not shown. */
  keepSpare(show: () => Answer): void {
    this.#spare = { show, segment: this.#segment };
  }

  /** Finishes with the last spare answer, which is better than none. Returns false if there is none. */
  async finishWithSpare(): Promise<boolean> {
    const spare = this.#spare;
    if (!spare || this.output.begun) return false;
    this.#segment = spare.segment;
    this.#isSpare = true;
    await this.finish(spare.show());
    return true;
  }

  /** Ends a complete answer. */
  async finish(ending: Answer): Promise<void> {
    const { usageAsked } = this.facts;
    const endedWell = ending.finish !== undefined && !ending.cutShort;
    // For a spare answer, which passes unchanged, the provider's report is right.
    const usage = this.#isSpare ? undefined : this.attempts.usage(endedWell, this.facts.promptSize);
    this.transcript.fold({ kind: 'finish', reason: ending.reason });
    if (ending.forwarded) this.output.finishForwarded();
    else if (ending.begun) this.output.finishRest(usageAsked && !this.transcript.usage ? usage : undefined);
    else this.output.finish({ ...ending, ...(usage && { usage }), usageAsked });
    await this.output.end();
  }

  async fail(error: object): Promise<void> {
    this.output.fail(error);
    await this.output.end();
  }

  /** Seals the journal and reports the cost of the run. */
  async close(end: JournalEnd): Promise<void> {
    this.#settleAccounts();
    await this.#held?.end(end.status === 'complete');
    await this.#journal.close(end);
  }

  /** Lets another replica continue, with everything that was recorded. */
  async release(): Promise<void> {
    this.#settleAccounts();
    await this.#held?.end(false);
    await this.#journal.release();
  }

  #settleAccounts(): void {
    this.output.close();
    this.attempts.settle();
    if (this.#repeated > 0)
      this.#context.log.info({ run: this.run.id, calls: this.#repeated }, 'repeated tool calls dropped');
  }

  /** Removes reasoning that the last attempt left unshown. */
  #restart(): void {
    const { held_reasoning } = this.output;
    this.transcript.dropReasoning(held_reasoning);
    this.attempts.dropReasoning(held_reasoning);
    this.output.restart();
  }

  async #onStale(): Promise<void> {
    const permission = regained(this.run, this.#journal, this.#context, this.#over.signal);
    this.output.hold(permission);
    if (await permission) {
      this.output.hold(undefined);
      return;
    }
    this.#journal.begin(undefined, this.#context.time.now());
    this.#context.log.warn({ run: this.run.id }, 'superseded: another replica has taken the run over');
    this.#stop(SUPERSEDED);
  }

  #stop(reason: unknown): void {
    if (reason === SUPERSEDED) this.#held?.stop();
    this.#over.abort(reason);
    // Collected frames that were not sent are left to the successor.
    if (reason === SUPERSEDED || reason === HAND_OVER) this.output.close();
    else this.output.cancelProof();
  }

  /** Returns the same array if nothing had to be added or dropped. */
  #fold(deltas: readonly Delta[]): readonly Delta[] {
    let folded: Delta[] | undefined;
    for (const delta of deltas) {
      const closes = this.transcript.hasOpenCalls
        ? closedBefore(delta, this.transcript, this.facts.schemas, this.policy.tool_proof)
        : [];
      if (closes.length > 0) folded ??= deltas.slice(0, deltas.indexOf(delta));
      for (const close of closes) {
        if (this.#drops(close)) continue;
        this.transcript.fold(close);
        folded?.push(close);
      }
      if (delta.kind === 'tool_close' && this.#drops(delta)) {
        folded ??= deltas.slice(0, deltas.indexOf(delta));
        continue;
      }
      this.transcript.fold(delta);
      if (delta.kind === 'tool_start') this.#noteHeldCalls(false)?.began();
      this.attempts.keep(delta);
      folded?.push(delta);
    }
    return folded ?? deltas;
  }

  /** `isNoted`: an earlier replica has left a note. */
  #noteHeldCalls(isNoted: boolean): HeldCallNotes | undefined {
    if (this.run.events !== 'none' || this.signal.reason === SUPERSEDED) return undefined;
    const heldNow = () => heldIn(this.transcript, this.restored?.unfinished, !this.facts.legacyFunctions);
    this.#held ??= new HeldCallNotes(this.run, this.#context, { heldNow, isNoted });
    return this.#held;
  }

  /** Whether `delta` would settle a call that repeats a settled one. If so, cancels it. */
  #drops(delta: Delta): boolean {
    const { drop_repeated_calls } = this.#context.configuration.recovery;
    // A call that the client has seen is no repetition, because in live mode nothing tells the client about a
    // cancellation.
    if (delta.kind !== 'tool_close' || !drop_repeated_calls || this.policy.isLive) return false;
    const call = this.transcript.openCalls.find(({ index }) => index === delta.index);
    if (!call || !isRepeated(call, this.transcript.closedCalls)) return false;
    this.#repeated++;
    this.cancel([call], REPEATED);
    return true;
  }

  /** The current attempt has produced its first content. */
  #beginSegment(segment: Segment): void {
    this.#segment = undefined;
    this.output.begin(segment);
    this.transcript.fold({ kind: 'segment', ...segment });
    this.watch?.answering();
  }
}
