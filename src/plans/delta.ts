import type { Cause } from '../interrupts/interruption.ts';
import type { Mode } from './seam/mode.ts';

/**
 * One normalised increment of an assistant turn. Every wire is translated into these, and only these are
 * folded into the transcript, written to the journal and reasoned about by `decide()`.
 *
 * Tool calls are named by `index`: the run's own number for the call, in order of appearance over all attempts,
 * never reused. It is not the provider's index, which may repeat, skip or be missing. In the journal it is the
 * position at which the client saw the call.
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
      /** The provider's own fields of the call, such as a thought signature, which the client must send back. */
      readonly extra?: Readonly<Record<string, unknown>>;
    }
  | { readonly kind: 'tool_arguments'; readonly index: number; readonly text: string }
  | { readonly kind: 'tool_close'; readonly index: number; readonly proof: Proof }
  /** `reason`: where it was not cut by an interruption. */
  | { readonly kind: 'tool_cancel'; readonly index: number; readonly reason?: 'repeated' }
  /** The provider says that it runs a tool of its own: from here on it may have had its effect. */
  | { readonly kind: 'provider_tool_start'; readonly id: string; readonly name: string }
  /** Such a tool has its result. `items`: both, as the provider takes them back. */
  | {
      readonly kind: 'provider_tool_end';
      readonly id: string;
      readonly name: string;
      readonly items: readonly object[];
    }
  /** In journals only: a settled call of an answer with several choices, whose events are sent as they come. */
  | {
      readonly kind: 'choice_call';
      readonly choice: number;
      readonly id: string;
      readonly name: string;
      readonly arguments: string;
    }
  | { readonly kind: 'finish'; readonly reason: string }
  | { readonly kind: 'usage'; readonly usage: Usage }
  /** In journals only: the attempt that says what follows. */
  | ({ readonly kind: 'segment' } & Segment);

/** What the model says, besides calls. */
export type Prose = Extract<Delta, { readonly kind: 'text' | 'refusal' | 'reasoning' }>;

/** What a tool call is made of. */
export type ToolDelta = Extract<Delta, { readonly kind: 'tool_start' | 'tool_arguments' | 'tool_close' }>;

/**
 * How well it is proven that a tool call is complete.
 * 3: the wire says so. 2: a later call or later text began. 1: the arguments are an object that satisfies
 * the tool's schema. A higher proof always satisfies a lower minimum.
 */
export type Proof = 1 | 2 | 3;

/** Token counts as the provider reports them; fields beyond the three totals are kept as they came. */
export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly [detail: string]: unknown;
}

/**
 * The part of an answer that one attempt said: the journal tells it with the attempt's first content, and what follows
 * is of it, up to the next one.
 */
export interface Segment {
  /** Neither this nor {@link upstream} is known of what a client brought. */
  readonly attempt?: number;
  /** The configured name. */
  readonly upstream?: string;
  /** Asked for, where it is not the one that the client asked for. */
  readonly model?: string;
  /** `brought`: the client had it of a replica that was lost before it was stored. */
  readonly mode: 'first' | Mode | 'brought';
  /** What was decided after the interruption before it, and what that was; absent for a first attempt. */
  readonly plan?: 'R1' | 'R3' | 'R4';
  readonly cause?: Cause;
  readonly compressed?: Compression;
}

/** The same of an attempt that is made here. */
export interface AttemptSegment extends Segment {
  readonly attempt: number;
  readonly upstream: string;
  readonly mode: 'first' | Mode;
}

/** What of a conversation was put to the model in fewer words. */
export interface Compression {
  readonly messages: number;
  /** That they had. */
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

/** What of an answer `delta` adds to; `undefined` for one that only says something about it. */
export const partOf = ({ kind }: Delta): AnswerPart | undefined => PARTS[kind];

/** Why a call is cancelled that says what a settled one has said. */
export const REPEATED = 'repeated';

/** Gives a call up. That an interruption has cut it need not be said, for then the answer shows it. */
export const cancelDelta = (index: number, reason: string): Delta =>
  reason === REPEATED ? { kind: 'tool_cancel', index, reason } : { kind: 'tool_cancel', index };
