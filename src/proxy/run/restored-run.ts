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
  /** Fragments of tool calls were shown as they came. */
  readonly live: boolean;
  /** The events were sent as they came: `n > 1`. */
  readonly forwarded: boolean;
}

/** What the client was sent by replicas before this one, folded from the journal and from what the client brought. */
export class RestoredRun {
  readonly transcript = new Transcript();
  /** All of it counts as one attempt whose usage was never reported. */
  readonly tally = newTally({ mode: 'first', added_messages: [] });
  /** Events that the client has and the journal had not: they are to be recorded before anything else. */
  readonly healed: readonly JournalEvent[];
  /** Calls that the last replica held and that were never settled. */
  readonly unfinished: readonly ToolCall[];
  /** Settled calls of an answer with several choices. */
  readonly choiceCalls: SettledCall[] = [];
  /** How many events the client has. */
  seq = 0;
  /** The last attempt that is known of. */
  attempts = 1;
  #phase: Phase = 'connect';
  /** Some of it was said by an attempt that was sent what had been said before. */
  #hasMore: boolean = false;
  readonly #rules: RestorationRules;
  readonly #reader: DeliveredReader;
  /** Has the identity of the answer. */
  #first: string | undefined;
  #content: string | undefined;
  #last: string | undefined;
  #broughtContent = false;
  readonly #events: JournalEvent[] = [];

  /** `tail` must have been found {@link readableTail readable}. */
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

  /** Continues the answer where it was left: with its identity, if any of it was sent, and its calls in their places. */
  restore(answer: AnswerWriter): void {
    const { toolCalls: calls } = this.transcript;
    answer.restore({ first: this.#first, content: this.#content, calls, events: this.#events });
  }

  /** Stands for all that was sent, where something has to be said in the name of an event. */
  get event(): AnswerEvent | undefined {
    return this.#first === undefined ? undefined : this.#rules.wire.delivered.standIn(this.#first);
  }

  /** The last event of the stream was sent: `[DONE]`, or the error. */
  get ended(): 'done' | 'error' | undefined {
    return this.#last === undefined ? undefined : this.#rules.wire.delivered.endOf(this.#last);
  }

  /** The error that the client was sent last, if the event that is to end its stream after that is missing. */
  get announcedError(): object | undefined {
    return this.#last === undefined ? undefined : this.#rules.wire.delivered.announcedError?.(this.#last);
  }

  /** The same as an attempt, which was lost with its replica unless the answer was finished. */
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
    // Brought events may continue a call whose beginning the log has.
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

  /** The part of the journal that was lost said which attempt produced the brought events. */
  #withSegment(deltas: readonly Delta[]): readonly Delta[] {
    if (this.#broughtContent || !deltas.some(partOf)) return deltas;
    this.#broughtContent = true;
    return [{ kind: 'segment', mode: 'brought' }, ...deltas];
  }

  /** The deltas of an event, with those that are not to be seen in it: of calls that were closed or cancelled. */
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
    // Held calls are sent when they are closed, and whole.
    if (!live && !showsCloses)
      for (const { index } of this.transcript.openCalls) add({ kind: 'tool_close', index, proof: 1 });
    const cancelled = this.transcript.openCalls.find((call) => call.id === id);
    if (cancelled) add({ kind: 'tool_cancel', index: cancelled.index });
    return deltas;
  }

  /** Where a call is several events, the journal has all of it with the first one. */
  #isTold(delta: Delta): boolean {
    if (delta.kind !== 'tool_arguments' && delta.kind !== 'tool_close') return false;
    return !this.transcript.openCalls.some(({ index }) => index === delta.index);
  }

  /**
   * The closes and cancels that went unseen before `delta`. A call that was closed has arguments, for it was sent `{}`
   * if there were none; what is open without any, or with half of them, when the answer finishes was cancelled.
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
    // The report of a continuation is of a larger prompt than the client's, and of a part of the answer.
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

/** A call that was cut after all that were delivered. */
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

/** True if every one of these payloads is an event that a run could have sent. */
export function readableTail(tail: readonly string[], wire: Wire): boolean {
  const reader = wire.delivered.reader();
  return tail.every((payload) => reader.read(payload, 0) !== undefined);
}
