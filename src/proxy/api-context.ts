import type { StoredRun } from '../checkpoint/store.ts';
import type { ActiveWork } from './active-work.ts';
import type { AnswerIds } from './answer-ids.ts';
import type { Models } from './models.ts';
import type { NoticeBoard } from './notices/notice-board.ts';
import type { PassThrough } from './passthrough.ts';
import type { Reader } from './resume/reader.ts';
import type { RunLookup } from './resume/run-lookup.ts';
import type { Client, Outcome, Run, RunContext } from './run.ts';
import type { RunRegistry } from './run-registry.ts';
import type { StreamRefusals } from './stream-refusals.ts';
import type { HealthRegistry } from './targets/health-registry.ts';

/** Delivers one run to its end; see relay.ts. */
export type Relay = (run: Run, client: Client, context: RunContext) => Promise<Outcome>;

/** Delivers a stored run from a cursor on; see follow.ts. */
export type Follow = (
  reader: Reader,
  stored: StoredRun,
  client: Client,
  context: RunContext,
) => Promise<Outcome>;

/** Everything the routes need. */
export interface ApiContext extends RunContext {
  readonly relay: Relay;
  readonly follow: Follow;
  readonly passThrough: PassThrough;
  readonly models: Models;
  readonly healths: HealthRegistry;
  /** Which models are to be asked without a stream. */
  readonly streamRefusals: StreamRefusals;
  /** Keys the owner of a run. */
  readonly secret: string;
  /** Everything under way, for draining. */
  readonly work: ActiveWork;
  readonly registry: RunRegistry;
  readonly lookup: RunLookup;
  readonly notices: NoticeBoard;
  readonly answerIds: AnswerIds;
}
