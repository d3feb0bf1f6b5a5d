import { type AnswerPart, type Delta, type Proof, partOf, type Segment, type Usage } from '../plans/delta.ts';
import type { SettledCall } from '../plans/tool-call.ts';
import { foldProviderTool, type ProviderTool } from '../plans/transcript.ts';
import type { JournalEvent, JournalRecord, RunHeader } from './journal.ts';

/** A run's content up to its last record, as plain data. */
export interface JournalFold {
  /** The number of events: the client's cursor. */
  readonly seq: number;
  /** When the last record was handed to the store, if known. */
  readonly stored_at_ms?: number;
  readonly header?: RunHeader;
  readonly text: string;
  readonly refusal: string;
  readonly reasoning: string;
  /** Calls that weren't cancelled, in the order they began. */
  readonly tool_calls: readonly FoldedToolCall[];
  /** Settled calls of an answer with several choices, in the order they were settled. */
  readonly choiceCalls: readonly SettledCall[];
  /** Tools that the provider ran, in the order they began. */
  readonly providerTools: readonly ProviderTool[];
  /** Their indexes were shown to the client and can't be reused. */
  readonly cancelled_calls: readonly FoldedToolCall[];
  readonly finish?: string;
  readonly usage?: Usage;
  /** Which attempt produced which part, in order; empty for journals of older versions. */
  readonly segments: readonly FoldedSegment[];
  /** All events; the one at index `n` has ordinal `n + 1`. */
  readonly events: readonly JournalEvent[];
}

/** The settled calls of an answer across all choices. */
export const settledCalls = ({
  tool_calls,
  choiceCalls,
}: Pick<JournalFold, 'tool_calls' | 'choiceCalls'>): readonly SettledCall[] => [
  ...tool_calls.filter(({ closed }) => closed !== undefined),
  ...choiceCalls,
];

export interface FoldedToolCall {
  readonly index: number;
  readonly id: string;
  readonly name: string;
  /** The provider's own fields for the call. */
  readonly extra?: Readonly<Record<string, unknown>>;
  readonly arguments: string;
  /** The proof that closed the call; absent while the call is open. */
  readonly closed?: Proof;
}

/** Folds a run's records, which must be contiguous and start with the first. */
export function foldJournal(records: readonly JournalRecord[]): JournalFold {
  const fold = emptyFold();
  for (const record of records) {
    if (record.at_ms !== undefined) fold.stored_at_ms = record.at_ms;
    if (record.header) fold.header = record.header;
    for (const event of record.events) foldEvent(fold, event);
  }
  const { calls, segments, tools, upstream: _, ...rest } = fold;
  const tool_calls: FoldedToolCall[] = [];
  const cancelled_calls: FoldedToolCall[] = [];
  for (const { cancelled, ...call } of calls.values()) {
    if (cancelled) cancelled_calls.push(call);
    else tool_calls.push(call);
  }
  return {
    ...rest,
    seq: fold.events.length,
    tool_calls,
    cancelled_calls,
    providerTools: tools,
    segments: segments.folded,
  };
}

interface OpenFold {
  stored_at_ms?: number;
  header?: RunHeader;
  text: string;
  refusal: string;
  reasoning: string;
  calls: Map<number, OpenToolCall>;
  readonly tools: ProviderTool[];
  /** The upstream that produces the current content. */
  upstream: string | undefined;
  finish?: string;
  usage?: Usage;
  segments: SegmentFold;
  readonly choiceCalls: SettledCall[];
  events: JournalEvent[];
}

type OpenToolCall = { -readonly [Field in keyof FoldedToolCall]: FoldedToolCall[Field] } & {
  cancelled: boolean;
};

const emptyFold = (): OpenFold => ({
  text: '',
  refusal: '',
  reasoning: '',
  calls: new Map(),
  tools: [],
  upstream: undefined,
  segments: new SegmentFold(),
  choiceCalls: [],
  events: [],
});

function foldEvent(fold: OpenFold, event: JournalEvent): void {
  fold.events.push(event);
  for (const delta of event.deltas) {
    fold.segments.add(delta, fold.events.length);
    switch (delta.kind) {
      case 'text':
      case 'refusal':
      case 'reasoning':
        fold[delta.kind] += delta.text;
        break;
      case 'tool_start': {
        const { kind: _, ...call } = delta;
        fold.calls.set(delta.index, { ...call, arguments: '', cancelled: false });
        break;
      }
      case 'tool_arguments':
      case 'tool_close':
      case 'tool_cancel':
        foldCall(fold.calls.get(delta.index), delta);
        break;
      case 'choice_call': {
        const { id, name, arguments: json } = delta;
        fold.choiceCalls.push({ id, name, arguments: json });
        break;
      }
      case 'provider_tool_start':
        foldProviderTool(fold.tools, delta, fold.text.length, fold.upstream);
        break;
      case 'provider_tool_end':
        foldProviderTool(fold.tools, delta, fold.text.length, fold.upstream);
        break;
      case 'segment':
        fold.upstream = delta.upstream;
        break;
      case 'finish':
        fold.finish = delta.reason;
        break;
      case 'usage':
        fold.usage = delta.usage;
        break;
    }
  }
}

type CallDelta = Extract<Delta, { kind: 'tool_arguments' | 'tool_close' | 'tool_cancel' }>;

function foldCall(call: OpenToolCall | undefined, delta: CallDelta): void {
  // A client can't have seen a delta for a call that never began.
  if (!call) return;
  if (delta.kind === 'tool_arguments') call.arguments += delta.text;
  else if (delta.kind === 'tool_close') call.closed = delta.proof;
  else call.cancelled = true;
}

/** A segment and the events that show it. */
export interface FoldedSegment extends Segment {
  /** Ordinals of the first and last events that show part of it. */
  readonly from: number;
  readonly to: number;
  /** Shown length of each part in UTF-16 units. Calls, including cut ones, count their arguments. */
  readonly characters: Readonly<Record<AnswerPart, number>>;
  /** The answer was restarted after this segment. */
  readonly discarded: boolean;
}

interface OpenSegment extends Segment {
  readonly from: number;
  to: number;
  readonly characters: Record<AnswerPart, number>;
  discarded: boolean;
}

/** Folds an answer's segments. Content before the first segment belongs to none. */
export class SegmentFold {
  readonly #segments: OpenSegment[] = [];

  get folded(): readonly FoldedSegment[] {
    return this.#segments;
  }

  /** `seq`: the ordinal of the event that carries `delta`. */
  add(delta: Delta, seq: number): void {
    if (delta.kind === 'segment') {
      this.#begin(delta, seq);
      return;
    }
    const segment = this.#segments.at(-1);
    const part = partOf(delta);
    if (!segment || !part) return;
    segment.to = seq;
    if ('text' in delta) segment.characters[part] += delta.text.length;
  }

  #begin({ kind: _, ...segment }: Segment & { readonly kind: 'segment' }, seq: number): void {
    if (segment.mode === 'restart') for (const before of this.#segments) before.discarded = true;
    const characters = { text: 0, refusal: 0, reasoning: 0, calls: 0 };
    this.#segments.push({ ...segment, from: seq, to: seq, characters, discarded: false });
  }
}
