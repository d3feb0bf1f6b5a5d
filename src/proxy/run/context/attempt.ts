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

/** One upstream request, and how its answer joins what was already delivered. */
export interface PlannedAttempt {
  readonly target: RunTarget;
  readonly mode: 'first' | Mode;
  readonly request: AttemptRequest;
  /** Characters of each message added to the client's. */
  readonly added_messages: readonly number[];
  /** Characters of reasoning that is also sent back. */
  readonly added_reasoning?: number;
  /** We asked the provider to generate the answer in the background, although the client did not. */
  readonly isInBackground?: boolean;
  /** A nudge that keeps the client's settings, so that the provider's prompt cache still applies. */
  readonly keepsCache?: boolean;
  /** Set if the conversation was compressed. */
  readonly compressed?: Compression;
  /** The end that the answer already has, if only trailing events are still needed. */
  readonly ending?: Answer;
  /** Absent for the first attempt, whose output is the run's. */
  readonly splice?: Splice;
}

/** The result of an attempt, on whichever replica. */
export interface AttemptReport {
  /** The phase of its last content. */
  readonly phase: Phase;
  /** Set if the answer is complete. */
  readonly ending: Answer | undefined;
  /** How the attempt ended, if the answer isn't complete. */
  readonly end: AttemptEnd;
  /** Characters that it added to the run. */
  readonly added: number;
  /**
   * The raw position it reached in the answer, including the part that the client already had; `undefined` without
   * output.
   */
  readonly position: number | undefined;
  /** How long it had been silent when it ended. */
  readonly silent_ms: number;
  /** The provider's own response, if that was no stream. */
  readonly refusal: Refusal | undefined;
  /** Samples of its stream that identify the server. */
  readonly samples: Samples;
  /** The provider's usage report. */
  readonly usage?: Usage | undefined;
  /** Gaps between its chunks, if measured. */
  readonly chunk_gaps?: ChunkGaps | undefined;
  /** The provider's id for the answer, on wires where later requests may name it. */
  readonly answer_id?: string | undefined;
  /** Path to resume the answer, below the upstream's base URL; undefined if that isn't possible. */
  readonly resume_path?: string | undefined;
  /**
   * Path to `POST` to when the answer is no longer needed, below the same URL; undefined if nothing needs to be
   * stopped.
   */
  readonly cancel_path?: string | undefined;
  /** Parts of the answer that the provider accepts back only verbatim. */
  readonly sealed?: readonly object[] | undefined;
}

/** The end of an answer, as the relay sees it. */
export interface Answer extends Omit<Ending, 'usage' | 'usageAsked'> {
  /** The stream was forwarded unchanged, including its finish chunks. */
  readonly forwarded?: boolean;
  /** The stream did not end properly after the finish reason, so trailing events are missing. */
  readonly cutShort?: boolean;
  /** Another replica has delivered the finish chunk. */
  readonly begun?: boolean;
}

/** The phase that a delta of this kind belongs to. */
export const PHASE_OF: Readonly<Partial<Record<Delta['kind'], Phase>>> = {
  text: 'text',
  refusal: 'text',
  reasoning: 'reasoning',
  tool_start: 'tool_call',
  tool_arguments: 'tool_call',
};
