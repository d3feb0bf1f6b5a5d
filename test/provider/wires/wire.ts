import type { Envelope, EventStream, TokenUsage } from '../events.ts';
import type { ExpectedAnswer } from '../expected.ts';
import type { BadFinish, ErrorEvent } from '../fault.ts';
import type { Utterance } from '../limits.ts';
import type { CompletionRequest } from '../request.ts';

/** How the provider speaks on one API surface. Scripts are told in the terms of chat completions on all of them. */
export interface ProviderWire {
  /** What its paths end in. */
  readonly path: string;
  /** Headers of its streams besides those of every event stream. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Trailing assistant messages may be refused, or taken for closed turns. */
  readonly hasTurns: boolean;
  /** The request in the terms of chat completions; `null` for what is none. */
  request(body: unknown): CompletionRequest | null;
  /** Complete server-sent events of an answer. `usage_in`: `none` when it was not asked for. */
  events(
    said: Utterance,
    envelope: Envelope,
    usage: TokenUsage,
    usage_in: 'final' | 'finish_chunk' | 'none',
  ): EventStream;
  /** The events in which it reports a failure; after them the body ends. */
  errors(kind: ErrorEvent, envelope: Envelope, retry_after_s: number | undefined): readonly string[];
  /** The answer ends with a reason that is a failure. */
  badFinish(kind: BadFinish, envelope: Envelope): readonly string[];
  /** What follows an answer that ended, where the answer did not. */
  readonly done: readonly string[];
  /** An event cut off within its JSON, yet ended as an event. */
  malformed(envelope: Envelope): string;
  /** An event of the wire that says nothing. */
  ping(envelope: Envelope): string;
  /** The answer to a request that does not ask for a stream. `said`: the same piece by piece. */
  whole(expected: ExpectedAnswer, envelope: Envelope, said: Utterance): object;
}
