import type { AttemptEnd } from '../../../interrupts/classify.ts';
import type { Phase } from '../../../interrupts/interruption.ts';
import type { Compression, Delta, Usage } from '../../../plans/delta.ts';
import type { Mode } from '../../../plans/seam/mode.ts';
import type { Splice } from '../../../plans/splice.ts';
import type { AttemptRequest } from '../../upstream/attempt.ts';
import type { Refusal } from '../../upstream/refusal.ts';
import type { RunTarget } from '../../upstream/target.ts';
import type { Samples } from '../../wires/common/dialect.ts';
import type { Ending } from '../../wires/common/wire.ts';
import type { ChunkGaps } from './chunk-gaps.ts';

/** One upstream request, and how its answer is joined to what was delivered. */
export interface PlannedAttempt {
  readonly target: RunTarget;
  readonly mode: 'first' | Mode;
  readonly request: AttemptRequest;
  /** Characters of each message added to the client's. */
  readonly added_messages: readonly number[];
  /** Characters of the reasoning that is sent back besides. */
  readonly added_reasoning?: number;
  /** Its provider was asked to make the answer in the background, which the client has not asked for. */
  readonly isInBackground?: boolean;
  /** A nudge with the settings of the client, for the sake of the provider's prompt cache. */
  readonly keepsCache?: boolean;
  /** The conversation before it was put to the model in fewer words. */
  readonly compressed?: Compression;
  /** How the answer has ended already, where only what follows its end is asked for. */
  readonly ending?: Answer;
  /** Absent for the first attempt, whose output is the run's. */
  readonly splice?: Splice;
}

/** How an attempt went, whichever replica made it. */
export interface AttemptReport {
  /** What it said last. */
  readonly phase: Phase;
  /** Set when the answer is whole. */
  readonly ending: Answer | undefined;
  /** How it ended, when the answer is not whole. */
  readonly end: AttemptEnd;
  /** Characters that it added to the run. */
  readonly added: number;
  /** Raw position in the answer that it has reached, what the client had already included; `undefined` without output. */
  readonly position: number | undefined;
  /** How long it had said nothing when it ended. */
  readonly silent_ms: number;
  /** The provider's own answer, when that was no stream. */
  readonly refusal: Refusal | undefined;
  /** What its stream shows of the server it came from. */
  readonly samples: Samples;
  /** What its provider has reported. */
  readonly usage?: Usage | undefined;
  /** What came between its chunks, where that is measured. */
  readonly chunk_gaps?: ChunkGaps | undefined;
  /** What its provider calls the answer, on a wire where later requests may name it. */
  readonly answer_id?: string | undefined;
  /** Where its provider continues it, below the base URL of the upstream; undefined if it cannot. */
  readonly resume_path?: string | undefined;
  /** What to `POST` to once the answer is not needed any more, below the same; undefined if nothing has to be stopped. */
  readonly cancel_path?: string | undefined;
  /** Parts of what it said that its provider takes back only as they were. */
  readonly sealed?: readonly object[] | undefined;
}

/** How an answer ends, as the relay knows it. */
export interface Answer extends Omit<Ending, 'usage' | 'usageAsked'> {
  /** The stream was passed on as it came, its finish chunks included. */
  readonly forwarded?: boolean;
  /** The stream did not end as it should after the finish reason: what else was to come is missing. */
  readonly cutShort?: boolean;
  /** Another replica has delivered the finish chunk. */
  readonly begun?: boolean;
}

/** What an attempt does that says something of this kind. */
export const PHASE_OF: Readonly<Partial<Record<Delta['kind'], Phase>>> = {
  text: 'text',
  refusal: 'text',
  reasoning: 'reasoning',
  tool_start: 'tool_call',
  tool_arguments: 'tool_call',
};
