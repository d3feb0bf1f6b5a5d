import type { Compression } from '../../../plans/delta.ts';
import type { Mode } from '../../../plans/seam/mode.ts';
import type { Splice } from '../../../plans/splice.ts';
import type { AttemptRequest } from '../../upstream/attempt.ts';
import type { RunTarget } from '../../upstream/target.ts';
import type { Answer } from './attempt-report.ts';

/** One upstream request, and how its answer is joined to what was delivered. */
export interface PlannedAttempt {
  readonly target: RunTarget;
  readonly mode: 'first' | Mode;
  readonly request: AttemptRequest;
  /** Characters of each message added to the client's. */
  readonly added_messages: readonly number[];
  /** Characters of the reasoning that is sent back besides. */
  readonly added_reasoning?: number;
  /** The conversation before it was put to the model in fewer words. */
  readonly compressed?: Compression;
  /** How the answer has ended already, where only what follows its end is asked for. */
  readonly ending?: Answer;
  /** Absent for the first attempt, whose output is the run's. */
  readonly splice?: Splice;
}
