import type { AnswerGivenBack } from '../../../plans/provider-tools.ts';
import type { Mode, Prefix } from '../../../plans/seam/mode.ts';
import type { Dialect } from './dialect.ts';
import type { WireRequest } from './wire.ts';

export interface ContinuationFacts<Request extends WireRequest = WireRequest> {
  readonly request: Request;
  readonly dialect: Dialect;
  /** The first event of the answer, parsed; empty if there was none. */
  readonly first: Readonly<Record<string, unknown>>;
  readonly mode: Mode;
  readonly prefix: Prefix;
  /** Set where the provider ran tools for the answer: their names, and what of the answer came before the prefix. */
  readonly ran?: { readonly names: readonly string[]; readonly before: AnswerGivenBack['before'] };
  readonly reasoning: string;
  /** Parts of the answer that the target has said and takes back only as they were. */
  readonly sealed: readonly object[];
  /** Names of the calls that were cut and are to be made again. */
  readonly cutTools: readonly string[];
  /** A nudge whose first wording was not followed. */
  readonly insists: boolean;
  /** What is left of `max_tokens`; infinite without a limit. */
  readonly tokens_left: number;
}

export const NOTHING_RAN: NonNullable<ContinuationFacts['ran']> = { names: [], before: [] };

/** Characters of what is given back of the answer: of all its text, and of what the provider takes back of each tool. */
export function givenBackCharacters({
  ran = NOTHING_RAN,
  prefix,
}: Pick<ContinuationFacts, 'ran' | 'prefix'>): readonly number[] {
  const texts = ran.before.map((part) => (typeof part === 'string' ? part.length : 0));
  const items = ran.before.flatMap((part) => (typeof part === 'string' ? [] : [JSON.stringify(part).length]));
  return [texts.reduce((sum, length) => sum + length, prefix.sent.length), ...items];
}

export interface Continuation<Request extends WireRequest = WireRequest> {
  readonly body: Request;
  /** Characters of each message that was added, for the usage ledger. */
  readonly added_messages: readonly number[];
  /** Characters of the reasoning that is sent back besides. */
  readonly added_reasoning?: number;
}
