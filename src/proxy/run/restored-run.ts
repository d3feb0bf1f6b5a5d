import type { JournalEvent } from '../../checkpoint/journal.ts';
import type { Phase } from '../../interrupts/interruption.ts';
import type { Policy } from '../../plans/decide.ts';
import { type Delta, type Proof, partOf } from '../../plans/delta.ts';
import { asksForRest } from '../../plans/seam/mode.ts';
import {
  closedBefore,
  closedByFinish,
  type SettledCall,
  type ToolCall,
  type ToolSchemas,
} from '../../plans/tool-call.ts';
import { Transcript } from '../../plans/transcript.ts';
import type { DeliveredEvent, DeliveredReader } from '../wires/common/delivered-events.ts';
import { NO_TRACES } from '../wires/common/dialect.ts';
import type { RequestFacts } from '../wires/common/request.ts';
import type { AnswerEvent, AnswerWriter, Wire } from '../wires/common/wire.ts';
import { type AttemptReport, PHASE_OF } from './context/attempt.ts';
import type { Resumption, Run } from './context/run.ts';
import { neverSettled } from './notices/held-calls.ts';
import { count, newTally } from './run-attempts.ts';

interface RestorationRules {
  readonly wire: Wire;
  readonly schemas: ToolSchemas;
  readonly tool_proof: Proof;
  /** Fragments of tool calls were shown as they arrived. */
  readonly live: boolean;
  /** Events were forwarded unchanged: `n > 1`. */
  readonly forwarded: boolean;
}

/** What earlier replicas sent to the client, folded from the journal and from the client's own events. */
export class RestoredRun {
  readonly transcript = new Transcript();
  /** Counts everything as one attempt without a usage report. */
  readonly tally = newTally({ mode: 'first', added_messages: [] });
  /** Events that the client has and the journal lacks; record them before anything else. */
  readonly healed: readonly JournalEvent[];
  /** Calls that the last replica held and that were never settled. */
  readonly unfinished: readonly ToolCall[];
  /** Settled calls of an answer with several choices. */
  readonly choiceCalls: SettledCall[] = [];
  /** The number of events that the client has. */
  seq = 0;
  /** The number of the last known attempt. */
  attempts = 1;
  #phase: Phase = 'connect';
  /** Part of it came from an attempt that continued earlier output. */
  #hasMore: boolean = false;
  readonly #rules: RestorationRules;
  readonly #reader: DeliveredReader;
  /** The first payload with the answer's identity. */
  #first: string | undefined;
  #content: string | undefined;
  #last: string | undefined;
  #broughtContent = false;
  readonly #events: JournalEvent[] = [];

  /** `tail` must be {@link readableTail readable}. */
  constructor({ stored, tail, held }: Pick<Resumption, 'stored' | 'tail' | 'held'>, rules: RestorationRules) {
    this.#rules = rules;
    this.#reader = rules.wire.delivered.reader();
    for (const { events } of stored.records) for (const event of events) this.#takeStored(event);
    this.healed = tail.map((payload) => this.#takeBrought(payload));
    const { toolCalls, finish } = this.transcript;
    const hasFailed = this.announcedError !== undefined;
    const isOver = finish !== undefined || hasFailed || this.ended !== undefined;
    this.unfinished = isOver ? [] : neverSettled(held, toolCalls).map((call) => cutAfter(toolCalls, call));
  }

  /** Lets a writer continue the answer, with its identity if any was sent, and its calls at their positions. */
  restore(answer: AnswerWriter): void {
    const { toolCalls: calls } = this.transcript;
    answer.restore({ first: this.#first, content: this.#content, calls, events: this.#events });
  }

  /** A stand-in event, for output that has no event of its own. */
  get event(): AnswerEvent | undefined {
    return this.#first === undefined ? undefined : this.#rules.wire.delivered.standIn(this.#first);
  }

  /** Whether the stream's last event was sent: `[DONE]` or the error. */
  get ended(): 'done' | 'error' | undefined {
    return this.#last === undefined ? undefined : this.#rules.wire.delivered.endOf(this.#last);
  }

  /** The error that was sent last, if the event that ends the stream after it is missing. */
  get announcedError(): object | undefined {
    return this.#last === undefined ? undefined : this.#rules.wire.delivered.announcedError?.(this.#last);
  }

  /** Everything restored as the report of one attempt, lost with its replica unless the answer was finished. */
  get report(): AttemptReport {
    const { finish, size } = this.transcript;
    return {
      phase: this.#phase,
      ending: finish === undefined ? undefined : { reason: finish, after: [], begun: true },
      end: { kind: 'replica_lost' },
      added: size,
      position: undefined,
      silent_ms: 0,
      refusal: undefined,
      samples: this.#first === undefined ? NO_TRACES : { ...NO_TRACES, events: [JSON.parse(this.#first)] },
      sealed: this.#rules.wire.delivered.sealed?.(this.#events),
    };
  }

  #takeStored(event: JournalEvent): void {
    // The client's events may continue a call that began in the log.
    if (this.#rules.wire.delivered.showsCloses && event.payload !== undefined)
      this.#reader.read(event.payload, this.transcript.toolCalls.length);
    for (const delta of event.deltas) this.#fold(delta);
    this.#note(event);
  }

  #takeBrought(payload: string): JournalEvent {
    const event = this.#reader.read(payload, this.transcript.toolCalls.length);
    const deltas = this.#withSegment(event ? this.#deltasOf(event) : []);
    const brought = { deltas, payload };
    this.#note(brought);
    return brought;
  }

  /** The lost part of the journal named the attempt that produced these events. */
  #withSegment(deltas: readonly Delta[]): readonly Delta[] {
    if (this.#broughtContent || !deltas.some(partOf)) return deltas;
    this.#broughtContent = true;
    return [{ kind: 'segment', mode: 'brought' }, ...deltas];
  }

  /** The deltas of an event, including calls that closed or were cancelled without being visible in it. */
  #deltasOf({ deltas: said, cancelled: id }: DeliveredEvent): readonly Delta[] {
    const { live, forwarded, wire } = this.#rules;
    const { showsCloses } = wire.delivered;
    const deltas: Delta[] = [];
    const add = (delta: Delta) => {
      this.#fold(delta);
      deltas.push(delta);
    };
    for (const delta of said) {
      if (forwarded && delta.kind !== 'text') continue;
      if (showsCloses && this.#isTold(delta)) continue;
      if (!showsCloses) for (const end of this.#endsBefore(delta)) add(end);
      add(delta);
    }
    // Held calls are sent whole once they close.
    if (!live && !showsCloses)
      for (const { index } of this.transcript.openCalls) add({ kind: 'tool_close', index, proof: 1 });
    const cancelled = this.transcript.openCalls.find((call) => call.id === id);
    if (cancelled) add({ kind: 'tool_cancel', index: cancelled.index });
    return deltas;
  }

  /** If a call spans several events, the journal records all of it with the first. */
  #isTold(delta: Delta): boolean {
    if (delta.kind !== 'tool_arguments' && delta.kind !== 'tool_close') return false;
    return !this.transcript.openCalls.some(({ index }) => index === delta.index);
  }

  /**
   * The closes and cancels that were not visible before `delta`. A closed call has arguments, because empty ones are
   * sent as `{}`. A call that is open without complete arguments at the finish was cancelled.
   */
  #endsBefore(delta: Delta): readonly Delta[] {
    const { schemas, tool_proof } = this.#rules;
    const finishes = delta.kind === 'finish';
    const open = this.transcript.openCalls;
    const closes = finishes
      ? closedByFinish(this.transcript).closed
      : closedBefore(delta, this.transcript, schemas, tool_proof);
    const bare = new Set(open.filter((call) => call.arguments === '').map(({ index }) => index));
    const closed = closes.filter(({ index }) => !bare.has(index));
    if (!finishes) return closed;
    const indexes = new Set(closed.map(({ index }) => index));
    const cut = open.filter(({ index }) => !indexes.has(index));
    return [...closed, ...cut.map(({ index }): Delta => ({ kind: 'tool_cancel', index }))];
  }

  #fold(delta: Delta): void {
    if (delta.kind === 'choice_call') this.choiceCalls.push(delta);
    if (delta.kind === 'segment') this.attempts = delta.attempt ?? this.attempts;
    this.transcript.fold(delta);
    if (delta.kind === 'segment') this.#hasMore ||= asksForRest(delta.mode);
    // A continuation's report covers a longer prompt than the client's, and only part of the answer.
    if (delta.kind !== 'usage' || !this.#hasMore) count(this.tally, delta, 'came');
    count(this.tally, delta, 'kept');
    this.#phase = PHASE_OF[delta.kind] ?? this.#phase;
  }

  #note(event: JournalEvent): void {
    const { payload, deltas } = event;
    this.#events.push(event);
    this.seq++;
    this.#last = payload;
    if (payload === undefined || (this.#content !== undefined && this.#first !== undefined)) return;
    if (!this.#rules.wire.delivered.hasIdentity(payload)) return;
    this.#first ??= payload;
    if (deltas.length > 0) this.#content ??= payload;
  }
}

/** A call that was cut after all delivered ones. */
const cutAfter = (delivered: readonly ToolCall[], { id, name }: Pick<ToolCall, 'id' | 'name'>): ToolCall => ({
  index: delivered.length - 1,
  id,
  name,
  arguments: '',
  state: 'cancelled',
  followed: undefined,
});

export function restoredRun(
  resumption: Resumption,
  { wire, events }: Run,
  { schemas, choices }: RequestFacts,
  { tool_proof }: Policy,
): RestoredRun {
  return new RestoredRun(resumption, {
    wire,
    schemas,
    tool_proof,
    live: events !== 'none',
    forwarded: choices > 1,
  });
}

/** Whether every payload is an event that a run could have sent. */
export function readableTail(tail: readonly string[], wire: Wire): boolean {
  const reader = wire.delivered.reader();
  return tail.every((payload) => reader.read(payload, 0) !== undefined);
}
