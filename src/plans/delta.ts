import type { Cause } from '../interrupts/interruption.ts';
import type { Mode } from './seam/mode.ts';

/**
 * One normalised increment of an assistant turn. Every wire translates its events into deltas; the transcript, the
 * journal and `decide()` see nothing else.
 *
 * `index` identifies a tool call: the run's own number, in order of appearance over all attempts, never reused. The
 * provider's index may repeat, skip or be missing. In the journal it is the position at which the client saw the call.
 */
export type Delta =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'refusal'; readonly text: string }
  | { readonly kind: 'reasoning'; readonly text: string }
  | {
      readonly kind: 'tool_start';
      readonly index: number;
      readonly id: string;
      readonly name: string;
      /** Provider-specific fields of the call, such as a thought signature, which the client must send back. */
      readonly extra?: Readonly<Record<string, unknown>>;
    }
  | { readonly kind: 'tool_arguments'; readonly index: number; readonly text: string }
  | { readonly kind: 'tool_close'; readonly index: number; readonly proof: Proof }
  /** `reason`: set if something other than an interruption cancelled the call. */
  | { readonly kind: 'tool_cancel'; readonly index: number; readonly reason?: 'repeated' }
  /** The provider has started a tool of its own, which may have taken effect from here on. */
  | { readonly kind: 'provider_tool_start'; readonly id: string; readonly name: string }
  /** The tool has its result. `items`: call and result, in the form in which the provider accepts them back. */
  | {
      readonly kind: 'provider_tool_end';
      readonly id: string;
      readonly name: string;
      readonly items: readonly object[];
    }
  /** Journals only: a settled call of an answer with several choices, whose events are relayed as they arrive. */
  | {
      readonly kind: 'choice_call';
      readonly choice: number;
      readonly id: string;
      readonly name: string;
      readonly arguments: string;
    }
  | { readonly kind: 'finish'; readonly reason: string }
  | { readonly kind: 'usage'; readonly usage: Usage }
  /** Journals only: names the attempt that produced the following deltas. */
  | ({ readonly kind: 'segment' } & Segment);

/** The model's output without calls. */
export type Prose = Extract<Delta, { readonly kind: 'text' | 'refusal' | 'reasoning' }>;

/** The parts of a tool call. */
export type ToolDelta = Extract<Delta, { readonly kind: 'tool_start' | 'tool_arguments' | 'tool_close' }>;

/**
 * How strongly a tool call is proven complete.
 * 3: the wire says so. 2: a later call or later text began. 1: the arguments are an object that satisfies the tool's
 * schema. A higher proof always satisfies a lower minimum.
 */
export type Proof = 1 | 2 | 3;

/** Token counts as the provider reports them; fields beyond the three totals are kept verbatim. */
export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly [detail: string]: unknown;
}

/**
 * The part of an answer produced by one attempt. The journal records it before the attempt's first content; it applies
 * until the next segment.
 */
export interface Segment {
  /** Like {@link upstream}, unknown if the client brought the content. */
  readonly attempt?: number;
  /** The configured name of the target. */
  readonly upstream?: string;
  /** The requested model, if it differs from the client's choice. */
  readonly model?: string;
  /** `brought`: the client received it from a replica that was lost before it was stored. */
  readonly mode: 'first' | Mode | 'brought';
  /** The plan after the previous interruption, and that interruption's cause; absent for a first attempt. */
  readonly plan?: 'R1' | 'R3' | 'R4';
  readonly cause?: Cause;
  readonly compressed?: Compression;
}

/** The segment of an attempt made by this replica. */
export interface AttemptSegment extends Segment {
  readonly attempt: number;
  readonly upstream: string;
  readonly mode: 'first' | Mode;
}

/** The part of a conversation that was replaced with a summary. */
export interface Compression {
  readonly messages: number;
  /** Length of those messages. */
  readonly characters: number;
  readonly summary_characters: number;
}

export const isUsage = ({ kind }: Delta): boolean => kind === 'usage';

export type AnswerPart = 'text' | 'refusal' | 'reasoning' | 'calls';

const PARTS: Partial<Record<Delta['kind'], AnswerPart>> = {
  text: 'text',
  refusal: 'refusal',
  reasoning: 'reasoning',
  tool_start: 'calls',
  tool_arguments: 'calls',
  provider_tool_start: 'calls',
  provider_tool_end: 'calls',
};

/** The part of an answer that `delta` extends; `undefined` for metadata. */
export const partOf = ({ kind }: Delta): AnswerPart | undefined => PARTS[kind];

/** Reason to cancel a call that repeats a settled one. */
export const REPEATED = 'repeated';

/** Cancels a call. An interruption needs no reason, because the answer shows it. */
export const cancelDelta = (index: number, reason: string): Delta =>
  reason === REPEATED ? { kind: 'tool_cancel', index, reason } : { kind: 'tool_cancel', index };
