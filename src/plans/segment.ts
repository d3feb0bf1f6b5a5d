import type { Cause } from '../interrupts/interruption.ts';
import type { Mode } from './seam/mode.ts';

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
