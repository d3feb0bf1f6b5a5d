import type { JournalEvent } from '../../checkpoint/journal.ts';
import type { Phase } from '../../interrupts/interruption.ts';
import { closedBefore, closedByFinish } from '../../plans/closure.ts';
import type { Policy } from '../../plans/decide.ts';
import type { Delta, Proof } from '../../plans/delta.ts';
import type { ToolSchemas } from '../../plans/tool-proof.ts';
import { Transcript } from '../../plans/transcript.ts';
import { AttemptLedger } from '../attempt-ledger.ts';
import type { AttemptReport } from '../attempt-report.ts';
import type { Resumption, Run } from '../run.ts';
import { type ChatChunk, isObject } from '../wires/chat-chunk.ts';
import { ChatCompletionsReader, type ChatEvent } from '../wires/chat-completions.ts';
import { ChatEnvelope, type ChunkEvent } from '../wires/chat-envelope.ts';
import type { ChatFacts } from '../wires/chat-facts.ts';

interface RestorationRules {
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
  readonly ledger = new AttemptLedger({ mode: 'first', added_messages: [] });
  /** Events that the client has and the journal had not: they are to be recorded before anything else. */
  readonly healed: readonly JournalEvent[];
  /** How many events the client has. */
  seq = 0;
  #phase: Phase = 'connect';
  readonly #rules: RestorationRules;
  /** Calls are not read by it: in what was delivered they are told by their positions alone. */
  readonly #reader = new ChatCompletionsReader(() => 0);
  #first: ChatChunk | undefined;
  #content: ChatChunk | undefined;
  #last: string | undefined;

  /** `tail` must have been found {@link readableTail readable}. */
  constructor({ stored, tail }: Pick<Resumption, 'stored' | 'tail'>, rules: RestorationRules) {
    this.#rules = rules;
    for (const { events } of stored.records) for (const event of events) this.#takeStored(event);
    this.healed = tail.map((payload) => this.#takeBrought(payload));
  }

  /** The identity of the answer; none while nothing was sent. */
  get envelope(): ChatEnvelope | undefined {
    return this.#first && new ChatEnvelope(this.#first, this.#content);
  }

  /** Stands for all that was sent, where something has to be said in the name of an event. */
  get event(): ChunkEvent | undefined {
    if (!this.#first) return undefined;
    return { kind: 'chunk', payload: '', chunk: this.#first, deltas: [], role: false, manyChoices: false };
  }

  /** The last event of the stream was sent: `[DONE]`, or the error. */
  get ended(): 'done' | 'error' | undefined {
    return this.#last === undefined ? undefined : endOf(this.#last);
  }

  /** The same as an attempt, which was lost with its replica unless the answer was finished. */
  get report(): AttemptReport {
    const { finish, size } = this.transcript;
    return {
      phase: this.#phase,
      ending: finish === undefined ? undefined : { reason: finish, after: [], begun: true },
      end: { kind: 'replica_lost' },
      added: size,
      refusal: undefined,
    };
  }

  #takeStored(event: JournalEvent): void {
    for (const delta of event.deltas) this.#fold(delta);
    this.#note(event.payload, event.deltas.length > 0);
  }

  #takeBrought(payload: string): JournalEvent {
    const event = this.#reader.read({ data: payload });
    const deltas = event.kind === 'chunk' ? this.#deltasOf(event) : [];
    this.#note(payload, deltas.length > 0);
    return { deltas, payload };
  }

  /** The deltas of an event, with those that are not to be seen in it: of calls that were closed or cancelled. */
  #deltasOf({ deltas: said, chunk }: ChunkEvent): readonly Delta[] {
    const { live, forwarded } = this.#rules;
    const deltas: Delta[] = [];
    const add = (delta: Delta) => {
      this.#fold(delta);
      deltas.push(delta);
    };
    const calls = callDeltas(chunk, this.transcript.toolCalls.length);
    for (const delta of calls.length > 0 ? calls : said) {
      if (forwarded && delta.kind !== 'text') continue;
      for (const end of this.#endsBefore(delta)) add(end);
      add(delta);
    }
    // Held calls are sent when they are closed, and whole.
    if (!live)
      for (const { index } of this.transcript.openCalls) add({ kind: 'tool_close', index, proof: 1 });
    const cancelled = this.transcript.openCalls.find(({ id }) => id === cancelledCallOf(chunk));
    if (cancelled) add({ kind: 'tool_cancel', index: cancelled.index });
    return deltas;
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
    this.transcript.fold(delta);
    this.ledger.arrive(delta);
    this.ledger.keep(delta);
    this.#phase = phaseOf(delta) ?? this.#phase;
  }

  #note(payload: string | undefined, hasContent: boolean): void {
    this.seq++;
    this.#last = payload;
    if (payload === undefined || (this.#content && this.#first)) return;
    const chunk = chunkOf(payload);
    this.#first ??= chunk;
    if (hasContent) this.#content ??= chunk;
  }
}

export function restoredRun(
  resumption: Resumption,
  { events }: Run,
  { schemas, choices }: ChatFacts,
  { tool_proof }: Policy,
): RestoredRun {
  return new RestoredRun(resumption, {
    schemas,
    tool_proof,
    live: events !== 'none',
    forwarded: choices > 1,
  });
}

/** True if every one of these payloads is an event that a run could have sent. */
export function readableTail(tail: readonly string[]): boolean {
  const reader = new ChatCompletionsReader(() => 0);
  const isEvent = ({ kind }: ChatEvent) => kind === 'chunk' || kind === 'error_event';
  return tail.every((data) => data === '[DONE]' || isEvent(reader.read({ data })));
}

/** Whether this payload ends a stream, and how. */
export function endOf(payload: string): 'done' | 'error' | undefined {
  if (payload === '[DONE]') return 'done';
  if (!payload.startsWith('{"error":')) return undefined;
  // A chunk of a provider may begin like this, too.
  return chunkOf(payload) ? undefined : 'error';
}

function chunkOf(payload: string): ChatChunk | undefined {
  if (payload === '[DONE]') return undefined;
  const chunk: unknown = JSON.parse(payload);
  return isObject(chunk) && Array.isArray(chunk.choices) ? chunk : undefined;
}

/** The fragments of calls in an event as it was delivered. `next`: the position of the next call to begin. */
function callDeltas(chunk: ChatChunk, next: number): readonly Delta[] {
  const choice: unknown = Array.isArray(chunk.choices) ? chunk.choices[0] : undefined;
  const delta = isObject(choice) && isObject(choice.delta) ? choice.delta : {};
  const legacy = isObject(delta.function_call) ? delta.function_call : undefined;
  const fragments = legacy
    ? [{ index: typeof legacy.name === 'string' ? next : next - 1, id: '', function: legacy }]
    : Array.isArray(delta.tool_calls)
      ? delta.tool_calls.filter(isObject)
      : [];
  return fragments.flatMap(({ index, id, function: call }): Delta[] => {
    if (typeof index !== 'number' || !isObject(call)) return [];
    const { name, arguments: text } = call;
    const start = typeof name === 'string' && typeof id === 'string' && index === next;
    return [
      ...(start ? [{ kind: 'tool_start', index, id, name } as const] : []),
      ...(typeof text === 'string' && text !== '' && (start || index < next)
        ? [{ kind: 'tool_arguments', index, text } as const]
        : []),
    ];
  });
}

function cancelledCallOf({ holdfast }: ChatChunk): unknown {
  return isObject(holdfast) && holdfast.type === 'ToolCallCancel' ? holdfast.id : undefined;
}

function phaseOf({ kind }: Delta): Phase | undefined {
  switch (kind) {
    case 'text':
    case 'refusal':
      return 'text';
    case 'reasoning':
      return 'reasoning';
    case 'tool_start':
    case 'tool_arguments':
      return 'tool_call';
    default:
      return undefined;
  }
}
