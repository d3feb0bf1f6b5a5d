import type { Mode, Prefix } from '../../plans/continuation.ts';
import type { Dialect } from '../dialects/dialect.ts';
import type { WireRequest } from './wire.ts';

export interface ContinuationFacts<Request extends WireRequest = WireRequest> {
  readonly request: Request;
  readonly dialect: Dialect;
  /** The first event of the answer, parsed; empty if there was none. */
  readonly first: Readonly<Record<string, unknown>>;
  readonly mode: Mode;
  readonly prefix: Prefix;
  readonly reasoning: string;
  /** Parts of the answer that the target has said and takes back only as they were. */
  readonly sealed: readonly object[];
  /** Names of the calls that were cut and are to be made again. */
  readonly cutTools: readonly string[];
  /** What is left of `max_tokens`; infinite without a limit. */
  readonly tokens_left: number;
}

export interface Continuation<Request extends WireRequest = WireRequest> {
  readonly body: Request;
  /** Characters of each message that was added, for the usage ledger. */
  readonly added_messages: readonly number[];
}
