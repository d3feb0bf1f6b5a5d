import type { Envelope, EventStream, TokenUsage } from '../events.ts';
import type { ExpectedAnswer } from '../expected.ts';
import type { BadFinish, ErrorEvent } from '../fault.ts';
import type { Utterance } from '../limits.ts';
import type { CompletionRequest } from '../request.ts';

/** How the provider speaks on one API surface. Scripts use the terms of chat completions on all of them. */
export interface ProviderWire {
  /** The suffix of its paths. */
  readonly path: string;
  /** Headers of its streams besides those of every event stream. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether a trailing assistant message may be refused, or taken as a finished turn. */
  readonly hasTurns: boolean;
  /** The request as a chat completion request; `null` if it isn't one. */
  request(body: unknown): CompletionRequest | null;
  /** Complete server-sent events of an answer. `usage_in` is `none` if the request didn't ask for usage. */
  events(
    said: Utterance,
    envelope: Envelope,
    usage: TokenUsage,
    usage_in: 'final' | 'finish_chunk' | 'none',
  ): EventStream;
  /** The events that report a failure; the body ends after them. */
  errors(kind: ErrorEvent, envelope: Envelope, retry_after_s: number | undefined): readonly string[];
  /** The events of an answer that ends with a reason that means failure. */
  badFinish(kind: BadFinish, envelope: Envelope): readonly string[];
  /** What follows an answer that ended early, as if it were complete. */
  readonly done: readonly string[];
  /** An event whose JSON is cut off, but which ends properly as an event. */
  malformed(envelope: Envelope): string;
  /** An event without content. */
  ping(envelope: Envelope): string;
  /** The answer to a request that doesn't ask for a stream. `said` is the same answer, piece by piece. */
  whole(expected: ExpectedAnswer, envelope: Envelope, said: Utterance): object;
}
