import { asCompletion } from './completion-events.ts';
import type { ChunkDelta } from './deltas.ts';
import { DONE, type Envelope, type EventStream, event, type TokenUsage } from './events.ts';
import type { Utterance } from './limits.ts';
import type { ProviderWire } from './wires/wire.ts';

/** How one provider words a stream. */
export interface Accent {
  /** Headers of its streams besides those of every event stream. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The whole stream; `usage` if the request asked for it. */
  tell(utterance: Utterance, envelope: Envelope, usage: TokenUsage | undefined): EventStream;
  /** The events that report a failure in mid-stream; the body ends after them. */
  error(envelope: Envelope): readonly string[];
  /** What it sends as a sign of life. */
  readonly ping?: string;
  /** How it refuses to continue a trailing assistant message. */
  readonly refusal?: { readonly status: number; readonly body: unknown };
}

/** The wire as spoken with this accent. */
export function accented(wire: ProviderWire, accent: Accent): ProviderWire {
  const worded = wire.hasTurns ? accent : inCompletions(accent);
  return {
    ...wire,
    ...(accent.headers && { headers: accent.headers }),
    events: (said, envelope, usage, usage_in) =>
      worded.tell(said, envelope, usage_in === 'none' ? undefined : usage),
    errors: (kind, envelope, retry_after_s) =>
      kind === 'error_own' ? worded.error(envelope) : wire.errors(kind, envelope, retry_after_s),
    ping: (envelope) => accent.ping ?? wire.ping(envelope),
  };
}

/**
 * Most providers differ only in what surrounds a delta, and in where they put the role, the finish reason and the
 * usage.
 */
export interface Manner {
  /** A chunk with these choices. */
  around(envelope: Envelope, choices: readonly object[]): object;
  /** A choice with this delta. */
  choice(delta: object, finish: string | null): object;
  /** `alone`: in a chunk before any content. `once`: with the first content. `always`: in every delta. */
  readonly role: 'alone' | 'once' | 'always';
  /** The delta that contains only the role. */
  readonly opening?: object;
  /** The field for the model's reasoning; `reasoning_content` by default. */
  readonly thoughts?: 'reasoning';
  /** A delta as this provider words it. */
  readonly delta?: (delta: ChunkDelta) => object;
  /** Events before all others. */
  readonly preface?: (envelope: Envelope) => readonly string[];
  /** Fields that only the first chunk has. */
  readonly first?: object;
  /** The delta of the finish chunk. */
  readonly closing?: object;
  /** Fields that only the finish chunk has. */
  readonly last?: (usage: TokenUsage | undefined) => object;
  /**
   * Where usage goes: in an event of its own without choices, in the finish chunk, or in every chunk as a running
   * total.
   */
  readonly usage: 'own' | 'finish' | 'every' | 'none';
  /** Fields next to the usage if it has an event of its own. */
  readonly report?: object;
}

/** Words the stream in this manner. */
export const telling =
  (manner: Manner): Accent['tell'] =>
  ({ deltas, finish }, envelope, usage) => {
    const { role, usage: place } = manner;
    const chunk = (delta: object, reason: string | null, more: object = {}) =>
      event({ ...manner.around(envelope, [manner.choice(delta, reason)]), ...more });
    const along = (said: number) => (place === 'every' && usage ? { usage: usageAfter(said, usage) } : {});
    const thought = manner.thoughts === 'reasoning' ? deltas.map(thinkingInReasoning) : deltas;
    const worded = thought.map(manner.delta ?? ((delta) => delta));
    const spoken = worded.map((delta, index) => {
      const brings = role === 'always' || (role === 'once' && index === 0);
      const isFirst = index === 0 && role !== 'alone';
      return chunk(brings ? { role: 'assistant', ...delta } : delta, null, {
        ...along(index + 1),
        ...(isFirst && manner.first),
      });
    });
    const opening =
      role === 'alone'
        ? [
            chunk(manner.opening ?? { role: 'assistant', content: '' }, null, {
              ...along(0),
              ...manner.first,
            }),
          ]
        : [];
    const closing = { ...(role === 'always' && { role: 'assistant' }), ...manner.closing };
    const finished = chunk(closing, finish, {
      ...(place === 'finish' || place === 'every' ? usage && { usage } : {}),
      ...manner.last?.(usage),
    });
    const before = [...(manner.preface?.(envelope) ?? []), ...opening, ...spoken, finished];
    const report =
      place === 'own' && usage ? [event({ ...manner.around(envelope, []), usage, ...manner.report })] : [];
    return { events: [...before, ...report, DONE], finished_after: before.length };
  };

const usageAfter = (completion_tokens: number, { prompt_tokens }: TokenUsage): TokenUsage => ({
  prompt_tokens,
  completion_tokens,
  total_tokens: prompt_tokens + completion_tokens,
});

export function thinkingInReasoning({ reasoning_content, ...delta }: ChunkDelta): ChunkDelta {
  return reasoning_content === undefined ? delta : { ...delta, reasoning: reasoning_content };
}

/** The same accent on `/v1/completions`, where answers have no role. */
function inCompletions({ tell, error, ...accent }: Accent): Accent {
  return {
    ...accent,
    tell(said, envelope, usage) {
      const { events, finished_after } = tell(said, envelope, usage);
      const [before, after] = [events.slice(0, finished_after), events.slice(finished_after)];
      const answer = before.map(asCompletion).filter((each) => each !== undefined);
      const rest = after.map(asCompletion).filter((each) => each !== undefined);
      return { events: [...answer, ...rest], finished_after: answer.length };
    },
    error: (envelope) => error(envelope).flatMap((each) => asCompletion(each) ?? []),
  };
}
