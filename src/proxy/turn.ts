import type { JournalEnd } from '../checkpoint/journal-writer.ts';
import { cancelDelta, REPEATED } from '../plans/cancelled-call.ts';
import { closedBefore } from '../plans/closure.ts';
import type { Policy } from '../plans/decide.ts';
import type { Delta } from '../plans/delta.ts';
import { isRepeated } from '../plans/repeated-calls.ts';
import { type ToolCall, Transcript } from '../plans/transcript.ts';
import { deliveredTokens, logicalUsage, repaidTokens, usageByUpstream } from '../plans/usage-ledger.ts';
import { inTime } from '../time.ts';
import { AttemptLedger } from './attempt-ledger.ts';
import type { Answer } from './attempt-report.ts';
import { Delivery } from './delivery.ts';
import { eventId, FIRST_EPOCH } from './event-frame.ts';
import type { PlannedAttempt } from './recovery-request.ts';
import { type RestoredRun, restoredRun } from './resume/restored-run.ts';
import { type Client, HAND_OVER, type Resumption, type Run, type RunContext } from './run.ts';
import { RunJournal } from './run-journal.ts';
import type { RequestFacts } from './wires/request-facts.ts';
import type { AnswerEvent, WireReader } from './wires/wire.ts';

/** What the end of a run waits for the store at most. */
const PERSIST_WAIT_MAX_MS = 1000;

/** A recovery that is under way: from the interruption to the first new content. */
interface Recovery {
  readonly plan: string;
  readonly cause: string;
  /** The upstream that was interrupted. */
  readonly from: string;
}

/** Why the turn's signal aborts when another replica took the run over. */
export const SUPERSEDED = Symbol('superseded');

/**
 * The state of one run: what was said (transcript), what was shown (delivery), what was recorded (journal) and what
 * it cost (ledgers). The relay decides; the turn carries out.
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
  readonly #context: RunContext;
  readonly #journal: RunJournal;
  readonly #over = new AbortController();
  readonly #ledgers: AttemptLedger[] = [];
  readonly #started_ms: number;
  /** When something was last sent, or confirmed to be ours to send. */
  #flushed_ms: number;
  #calls = 0;
  /** Calls that said what a settled one had said. */
  #repeated = 0;
  /** The last event with content: what has to be said without one of its own is said in its name. */
  #event: AnswerEvent | undefined;
  #content_ms: number | undefined;
  #recovery: Recovery | undefined;
  /** The one that is asked, or was last. */
  #upstream: string;

  #reader: WireReader | undefined;

  /** Hands out the run's numbers for tool calls. */
  readonly nextCall = (): number => this.#calls++;

  constructor(run: Run, client: Client, context: RunContext, resumption?: Resumption) {
    const { recovery } = context.configuration;
    this.run = run;
    this.#upstream = run.target.name;
    this.#context = context;
    this.facts = run.wire.facts(run.request);
    this.policy = { ...recovery, schemas: this.facts.schemas, spliceable: this.facts.spliceable };
    this.#started_ms = context.time.now();
    this.#flushed_ms = this.#started_ms;
    this.signal = this.#over.signal;
    this.restored = resumption && restoredRun(resumption, run, this.facts, this.policy);
    this.transcript = this.restored?.transcript ?? new Transcript();
    this.#calls = this.transcript.toolCalls.length;
    this.#event = this.restored?.event;
    // A run of which nothing was sent may have had attempts, but nobody can see any of them.
    if (this.restored && this.restored.seq > 0) {
      this.#ledgers.push(this.restored.ledger);
      this.#content_ms = this.#started_ms;
    }
    const onStale = () => {
      context.log.warn({ run: run.id }, 'superseded: another replica has taken the run over');
      this.#stop(SUPERSEDED);
    };
    this.#journal = new RunJournal(run, context, onStale, resumption);
    for (const event of this.restored?.healed ?? []) this.#journal.record(event);
    const epoch = FIRST_EPOCH + (resumption?.stored.takeovers.length ?? 0);
    this.delivery = new Delivery({
      wire: run.wire,
      client,
      time: context.time,
      events: run.events,
      facts: this.facts,
      headers: () => ({
        'holdfast-run-id': run.id,
        'holdfast-attempts': String(this.attempts),
        'holdfast-upstream': this.#upstream,
      }),
      journal: this.#journal,
      ...(run.resumable && { idOf: (seq: number) => eventId(run.id, epoch, seq) }),
      ...(this.restored && { restored: this.restored }),
    });
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

  /** Upstream requests made so far. */
  get attempts(): number {
    return this.#ledgers.length;
  }

  /** What is left of the client's `max_tokens`. */
  get tokens_left(): number {
    return this.facts.max_tokens - deliveredTokens(this.#ledgers);
  }

  beginAttempt(planned: PlannedAttempt): AttemptLedger {
    const ledger = new AttemptLedger(planned);
    this.#ledgers.push(ledger);
    this.#upstream = planned.target.name;
    if (this.attempts > 1) this.delivery.restart(planned.mode === 'resume');
    return ledger;
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
    if (this.#recovery && deltas.length > 0) this.#announceRecovery(this.#recovery);
    this.delivery.show(folded, event, intact && folded === deltas);
  }

  /** An event of a request that is never spliced. */
  forward(event: AnswerEvent): void {
    for (const delta of event.deltas) if (delta.kind === 'text') this.transcript.fold(delta);
    this.delivery.forward(event);
  }

  /** Closes calls whose arguments prove that they are whole. */
  settle(calls: readonly ToolCall[]): void {
    const closes = calls.map(({ index }): Delta => ({ kind: 'tool_close', index, proof: 1 }));
    if (this.#event) this.accept(closes, this.#event, false);
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
      this.#ledgers.at(-1)?.keep(cancel);
    }
    this.delivery.cancelCalls(
      calls.map(({ index }) => index),
      reason,
      this.attempts,
    );
  }

  /** From now until new content comes, the client waits for a recovery. */
  beginRecovery(plan: string, cause: string): void {
    this.#recovery = { plan, cause, from: this.#recovery?.from ?? this.#upstream };
  }

  /** Content was shown at this time. */
  contentAt(now_ms: number): void {
    if (this.#content_ms === undefined) {
      this.#context.metrics.timeToFirstToken.observe((now_ms - this.#started_ms) / 1000);
    }
    this.#content_ms = now_ms;
  }

  /**
   * Sends what was collected; waits, if at all, for the store (`write_ahead`) or for a slow client. After a silence as
   * long as a lease, of the provider or of this process, the store is asked first whether the run is still ours.
   */
  flush(now_ms: number = this.#context.time.now()): Promise<void> | undefined {
    // An event that shows nothing yet ends no silence: what it is shown with would go unasked.
    if (!this.delivery.pending) return undefined;
    const { durability, lease_ms } = this.#context.configuration.checkpoint;
    const silent_ms = now_ms - this.#flushed_ms;
    this.#flushed_ms = now_ms;
    if (durability === 'write_ahead' || this.delivery.needsStored)
      return this.#journal.stored().then(() => this.delivery.flush());
    if (silent_ms < lease_ms) return this.delivery.flush();
    return this.#journal.confirmed().then(() => this.delivery.flush());
  }

  /** Has everything stored that was said, sent or not. Resolves all the same when the store fails at it, or is slow. */
  async persist(): Promise<void> {
    await inTime(this.#journal.stored(), this.#context.time, PERSIST_WAIT_MAX_MS);
  }

  /** Ends the answer as a whole one. */
  async finish(ending: Answer): Promise<void> {
    const { usageAsked, request_characters } = this.facts;
    // One answer that ended as it should speaks for itself, by its silence as well.
    const isOne = this.#ledgers.slice(1).every(({ mode }) => mode === 'resume');
    const isProviders = isOne && ending.finish !== undefined && !ending.cutShort;
    const usage = isProviders ? undefined : logicalUsage(this.#ledgers, { request_characters });
    this.transcript.fold({ kind: 'finish', reason: ending.reason });
    if (ending.forwarded) this.delivery.finishForwarded();
    else if (ending.begun) this.delivery.finishRest(usageAsked && !this.transcript.usage ? usage : undefined);
    else this.delivery.finish({ ...ending, ...(usage && { usage }), usageAsked });
    await this.#end();
  }

  async fail(error: object): Promise<void> {
    this.delivery.fail(error);
    await this.#end();
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
    const { metrics, log } = this.#context;
    this.delivery.close();
    if (this.run.targets) log.info({ run: this.run.id, usage: usageByUpstream(this.#ledgers) }, 'usage');
    if (this.#repeated > 0)
      log.info({ run: this.run.id, calls: this.#repeated }, 'repeated tool calls dropped');
    for (const { reported } of this.#ledgers) {
      metrics.tokens.inc({ kind: 'prompt' }, reported?.prompt_tokens ?? 0);
      metrics.tokens.inc({ kind: 'completion' }, reported?.completion_tokens ?? 0);
    }
    metrics.tokens.inc({ kind: 'repaid' }, repaidTokens(this.#ledgers));
  }

  #stop(reason: unknown): void {
    this.#over.abort(reason);
    // What was collected and not sent yet is the successor's to send.
    if (reason === SUPERSEDED || reason === HAND_OVER) this.delivery.close();
  }

  /** The same deltas if nothing had to be added. */
  #fold(deltas: readonly Delta[]): readonly Delta[] {
    const ledger = this.#ledgers.at(-1);
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
      ledger?.keep(delta);
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

  #announceRecovery({ plan, cause, from }: Recovery): void {
    const now_ms = this.#context.time.now();
    const gap_ms = now_ms - (this.#content_ms ?? this.#started_ms);
    const upstream = this.#upstream;
    this.#recovery = undefined;
    this.delivery.recovered();
    this.#context.metrics.recoveryGap.observe(gap_ms / 1000);
    this.delivery.advise({
      type: 'Recovered',
      plan,
      cause,
      attempt: this.attempts,
      gap_ms: Math.round(gap_ms),
      ...(upstream !== from && { upstream }),
    });
    this.#context.log.info(
      { run: this.run.id, upstream, plan, cause, attempt: this.attempts, gap_ms: Math.round(gap_ms) },
      'recovered',
    );
  }

  async #end(): Promise<void> {
    const { durability, lease_ms } = this.#context.configuration.checkpoint;
    if (durability === 'write_ahead' || this.delivery.needsStored) await this.#journal.stored();
    else if (this.#context.time.now() - this.#flushed_ms >= lease_ms) await this.#journal.confirmed();
    this.delivery.end();
  }
}
