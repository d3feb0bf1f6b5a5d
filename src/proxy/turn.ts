import type { JournalEnd } from '../checkpoint/journal-writer.ts';
import type { Cause } from '../interrupts/interruption.ts';
import { cancelDelta, REPEATED } from '../plans/cancelled-call.ts';
import { closedBefore } from '../plans/closure.ts';
import type { Policy } from '../plans/decide.ts';
import type { Delta } from '../plans/delta.ts';
import { isRepeated } from '../plans/repeated-calls.ts';
import type { Segment } from '../plans/segment.ts';
import { type ToolCall, Transcript } from '../plans/transcript.ts';
import { inTime } from '../time.ts';
import type { AttemptRequest } from './attempt.ts';
import type { AttemptLedger } from './attempt-ledger.ts';
import type { Answer } from './attempt-report.ts';
import { Delivery } from './delivery.ts';
import { latestEpochName } from './epoch.ts';
import { eventId } from './event-frame.ts';
import { OwnedDelivery } from './owned-delivery.ts';
import type { PlannedAttempt } from './recovery-request.ts';
import { type RestoredRun, restoredRun } from './resume/restored-run.ts';
import { type Client, HAND_OVER, type Resumption, type Run, type RunContext } from './run.ts';
import { RunAttempts } from './run-attempts.ts';
import { RunJournal } from './run-journal.ts';
import type { RunWatch } from './run-observer.ts';
import type { RequestFacts } from './wires/request-facts.ts';
import type { AnswerEvent, WireReader } from './wires/wire.ts';

/** What the end of a run waits for the store at most. */
const PERSIST_WAIT_MAX_MS = 1000;

/** Why the turn's signal aborts when another replica took the run over. */
export const SUPERSEDED = Symbol('superseded');

interface Begun {
  readonly ledger: AttemptLedger;
  /** As it is to be sent. */
  readonly request: AttemptRequest;
}

/**
 * The state of one run: what was said (transcript), what was shown (delivery), what was recorded (journal) and by
 * whom (attempts). The relay decides; the turn carries out.
 */
export class Turn {
  readonly run: Run;
  readonly facts: RequestFacts;
  readonly policy: Policy;
  readonly transcript: Transcript;
  readonly delivery: Delivery;
  /** What other replicas made of the run before this one. */
  readonly restored: RestoredRun | undefined;
  /** Aborts when this replica is not to go on: nobody waits any more, {@link SUPERSEDED} or `HAND_OVER`. */
  readonly signal: AbortSignal;
  /** Is told what becomes of the run, if anybody wants to know. */
  readonly watch: RunWatch | undefined;
  readonly #context: RunContext;
  readonly #journal: RunJournal;
  readonly #over = new AbortController();
  readonly #attempts: RunAttempts;
  readonly #owned: OwnedDelivery;
  #calls = 0;
  /** Calls that said what a settled one had said. */
  #repeated = 0;
  /** The last event with content: what has to be said without one of its own is said in its name. */
  #event: AnswerEvent | undefined;
  #reader: WireReader | undefined;
  /** Of the attempt under way, as long as it has said nothing. */
  #segment: Segment | undefined;

  /** Hands out the run's numbers for tool calls. */
  readonly nextCall = (): number => this.#calls++;

  constructor(
    run: Run,
    client: Client,
    context: RunContext,
    watch: RunWatch | undefined,
    resumption?: Resumption,
  ) {
    const { recovery } = context.configuration;
    this.run = run;
    this.watch = watch;
    this.#context = context;
    this.facts = run.wire.facts(run.request);
    this.policy = { ...recovery, schemas: this.facts.schemas, spliceable: this.facts.spliceable };
    this.signal = this.#over.signal;
    this.restored = resumption && restoredRun(resumption, run, this.facts, this.policy);
    this.transcript = this.restored?.transcript ?? new Transcript();
    this.#calls = this.transcript.toolCalls.length;
    this.#event = this.restored?.event;
    this.#attempts = new RunAttempts(run, context, this.restored);
    const onStale = () => {
      context.log.warn({ run: run.id }, 'superseded: another replica has taken the run over');
      this.#stop(SUPERSEDED);
    };
    this.#journal = new RunJournal(run, context, onStale, resumption);
    for (const event of this.restored?.healed ?? []) this.#journal.record(event);
    const epoch = latestEpochName(resumption?.stored.takeovers ?? []);
    this.delivery = new Delivery({
      wire: run.wire,
      client,
      time: context.time,
      events: run.events,
      facts: this.facts,
      headers: () => ({
        'holdfast-run-id': run.id,
        'holdfast-attempts': String(this.attempts),
        'holdfast-upstream': this.#attempts.upstream,
      }),
      journal: this.#journal,
      storeFirst: run.resumable,
      ...(run.resumable && { idOf: (seq: number) => eventId(run.id, epoch, seq) }),
      ...(this.restored && { restored: this.restored }),
    });
    this.#owned = new OwnedDelivery(this.delivery, this.#journal, context);
    // AbortSignal.any would cost every run a kilobyte more.
    const end = () => this.#stop(run.signal.reason);
    if (run.signal.aborted) end();
    else run.signal.addEventListener('abort', end, { once: true });
  }

  /** True when the run is not this replica's to end: another has it, or is to have it. */
  get isWithdrawn(): boolean {
    const { aborted, reason } = this.signal;
    return aborted && (reason === SUPERSEDED || reason === HAND_OVER) && !this.delivery.ended;
  }

  /** When the run began, on whatever replica. */
  get created_at_ms(): number {
    return this.#journal.created_at_ms;
  }

  /** Upstream requests made so far, as far as is known. */
  get attempts(): number {
    return this.#attempts.count;
  }

  /** What is left of the client's `max_tokens`. */
  get tokens_left(): number {
    return this.facts.max_tokens - this.#attempts.delivered_tokens;
  }

  beginAttempt(planned: PlannedAttempt): Begun {
    const { ledger, segment } = this.#attempts.begin(planned);
    if (this.attempts > 1) this.delivery.restart(planned.mode === 'resume');
    this.#segment = segment;
    const headers = this.watch?.attempt({ ...segment, asked_model: segment.model ?? this.run.request.model });
    const { request } = planned;
    return {
      ledger,
      request: headers ? { ...request, headers: { ...request.headers, ...headers } } : request,
    };
  }

  /** What reads an attempt's events: one that comes back to an answer goes on with what the last one has read. */
  readerFor({ mode }: PlannedAttempt): WireReader {
    const { wire, request } = this.run;
    if (mode !== 'resume' || !this.#reader) this.#reader = wire.reader(this.nextCall, request);
    return this.#reader;
  }

  /** Makes `deltas` part of the run and shows them. `intact`: they are all that the event said. */
  accept(deltas: readonly Delta[], event: AnswerEvent, intact: boolean): void {
    this.#event = event;
    const folded = this.#fold(deltas);
    if (deltas.length > 0) {
      this.#beginSegment();
      this.#announceRecovery();
    }
    this.delivery.show(folded, event, intact && folded === deltas);
  }

  /** An event of a request that is never spliced. */
  forward(event: AnswerEvent): void {
    for (const delta of event.deltas) if (delta.kind === 'text') this.transcript.fold(delta);
    this.#beginSegment();
    this.delivery.forward(event);
  }

  /** Closes calls whose arguments prove that they are whole. */
  settle(calls: readonly ToolCall[]): void {
    const closes = calls.map(({ index }): Delta => ({ kind: 'tool_close', index, proof: 1 }));
    // They are of whoever said them: an attempt that was made since has added nothing, and recovered nothing.
    if (this.#event) this.delivery.show(this.#fold(closes), this.#event, false);
  }

  /** The answer starts anew: says so if anything of it could be seen. */
  announceReset(reason: string): void {
    const { reasoning, text } = this.transcript;
    if (reasoning === '' && text === '') return;
    const scope = reasoning === '' ? 'text' : text === '' ? 'reasoning' : 'all';
    this.delivery.advise({ type: 'StreamReset', reason, attempt: this.attempts, scope });
  }

  /** Gives the calls up: they were cut, and are dropped or announced as cancelled. */
  cancel(calls: readonly ToolCall[], reason: string): void {
    for (const { index } of calls) {
      const cancel = cancelDelta(index, reason);
      this.transcript.fold(cancel);
      this.#attempts.keep(cancel);
    }
    this.delivery.cancelCalls(
      calls.map(({ index }) => index),
      reason,
      this.attempts,
    );
  }

  /** From now until new content comes, the client waits for a recovery. */
  beginRecovery(plan: 'R1' | 'R3' | 'R4', cause: Cause): void {
    this.#attempts.beginRecovery(plan, cause);
  }

  /** Content was shown at this time. */
  contentAt(now_ms: number): void {
    this.#attempts.contentAt(now_ms);
  }

  /** Sends what was collected; see {@link OwnedDelivery}. */
  flush(now_ms: number = this.#context.time.now()): Promise<void> | undefined {
    return this.#owned.flush(now_ms);
  }

  /** Has everything stored that was said, sent or not. Resolves all the same when the store fails at it, or is slow. */
  async persist(): Promise<void> {
    await inTime(this.#journal.stored(), this.#context.time, PERSIST_WAIT_MAX_MS);
  }

  /** Ends the answer as a whole one. */
  async finish(ending: Answer): Promise<void> {
    const { usageAsked, request_characters } = this.facts;
    const endedWell = ending.finish !== undefined && !ending.cutShort;
    const usage = this.#attempts.usage(endedWell, request_characters);
    this.transcript.fold({ kind: 'finish', reason: ending.reason });
    if (ending.forwarded) this.delivery.finishForwarded();
    else if (ending.begun) this.delivery.finishRest(usageAsked && !this.transcript.usage ? usage : undefined);
    else this.delivery.finish({ ...ending, ...(usage && { usage }), usageAsked });
    await this.#owned.end();
  }

  async fail(error: object): Promise<void> {
    this.delivery.fail(error);
    await this.#owned.end();
  }

  /** Seals the journal and reports what the run cost. */
  async close(end: JournalEnd): Promise<void> {
    this.#settleAccounts();
    await this.#journal.close(end);
  }

  /** Lets another replica go on, with everything that was recorded. */
  async release(): Promise<void> {
    this.#settleAccounts();
    await this.#journal.release();
  }

  #settleAccounts(): void {
    this.delivery.close();
    this.#attempts.settle();
    if (this.#repeated > 0)
      this.#context.log.info({ run: this.run.id, calls: this.#repeated }, 'repeated tool calls dropped');
  }

  #stop(reason: unknown): void {
    this.#over.abort(reason);
    // What was collected and not sent yet is the successor's to send.
    if (reason === SUPERSEDED || reason === HAND_OVER) this.delivery.close();
  }

  /** The same deltas if nothing had to be added. */
  #fold(deltas: readonly Delta[]): readonly Delta[] {
    let folded: Delta[] | undefined;
    for (const delta of deltas) {
      const closes = closedBefore(delta, this.transcript, this.facts.schemas, this.policy.tool_proof);
      if (closes.length > 0) folded ??= deltas.slice(0, deltas.indexOf(delta));
      for (const close of closes) {
        if (this.#drops(close)) continue;
        this.transcript.fold(close);
        folded?.push(close);
      }
      if (this.#drops(delta)) {
        folded ??= deltas.slice(0, deltas.indexOf(delta));
        continue;
      }
      this.transcript.fold(delta);
      this.#attempts.keep(delta);
      folded?.push(delta);
    }
    return folded ?? deltas;
  }

  /** True if `delta` would settle a call that is settled already: then its repetition is cancelled. */
  #drops(delta: Delta): boolean {
    const { drop_repeated_calls } = this.#context.configuration.recovery;
    if (delta.kind !== 'tool_close' || !drop_repeated_calls) return false;
    const call = this.transcript.openCalls.find(({ index }) => index === delta.index);
    if (!call || !isRepeated(call, this.transcript.closedCalls)) return false;
    this.#repeated++;
    this.cancel([call], REPEATED);
    return true;
  }

  /** The attempt under way has said something. */
  #beginSegment(): void {
    if (!this.#segment) return;
    this.delivery.begin(this.#segment);
    this.watch?.answering();
    this.#segment = undefined;
  }

  #announceRecovery(): void {
    const recovered = this.#attempts.recovered();
    if (!recovered) return;
    this.watch?.recovered(recovered);
    this.delivery.recovered();
    this.delivery.advise(recovered);
  }
}
