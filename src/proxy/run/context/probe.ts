import type { EventSourceMessage } from 'eventsource-parser';
import { classify } from '../../../interrupts/classify.ts';
import { limitsFor, UNAIDED } from '../../../interrupts/clocks.ts';
import type { Interruption } from '../../../interrupts/interruption.ts';
import type { Time } from '../../../lib/time.ts';
import type { Metrics } from '../../../metrics/metrics.ts';
import type { Usage } from '../../../plans/delta.ts';
import { tokenCount, tokensIn } from '../../../plans/tokens.ts';
import { Attempt } from '../../upstream/attempt.ts';
import type { RunTarget } from '../../upstream/target.ts';
import { upstreamUrl } from '../../upstream/transport.ts';
import { ChatCompletionsReader } from '../../wires/chunks/chat-completions.ts';
import { chatWire } from '../../wires/chunks/chat-wire.ts';
import type { Samples } from '../../wires/common/dialect.ts';
import type { RunContext } from './run-context.ts';

/** After the finish reason only a usage report and `[DONE]` may follow. */
const FINISH_WAIT_MS = 2000;
/** Text longer than this can't have so few tokens, so it is no proper answer. */
const CHARACTERS_PER_TOKEN_MAX = 16;
/** A truncated answer still contains its most important part. */
const USABLE_FINISHES: ReadonlySet<string> = new Set(['stop', 'length']);

/** A short streamed request of our own on chat completions: a summary, a probe, or a check by `holdfast doctor`. */
interface ProbeRequest extends Pick<RunTarget, 'upstream' | 'headers'> {
  readonly body: object;
  /** Overrides the upstream's `base_url`. */
  readonly base_url?: string | undefined;
  /** Upper limits on the configured clocks: a probe must not take as long as an answer. */
  readonly attempt_max_ms: number;
  readonly connect_max_ms?: number;
  /** Cuts off an answer much longer than its tokens; `key` names the configured limit. */
  readonly limit?: { readonly tokens: number; readonly key: string };
  /** Aborts when the answer is no longer needed. */
  readonly signal?: AbortSignal;
}

/** Sends the request, and resolves when the answer has ended for any reason. */
export async function probe(
  request: ProbeRequest,
  { transport, configuration, time }: Pick<RunContext, 'transport' | 'configuration' | 'time'>,
): Promise<ProbeAnswer> {
  const { upstream, headers, body, base_url = upstream.base_url, attempt_max_ms } = request;
  const { connect_max_ms = Number.POSITIVE_INFINITY, limit, signal = new AbortController().signal } = request;
  const clocks = limitsFor({ ...configuration.clocks, ...upstream.clocks }, UNAIDED);
  const attempt = new Attempt(
    // Additions to client requests don't belong in this one.
    transport.bare ?? transport,
    { url: upstreamUrl(base_url, chatWire.path), headers, query: upstream.query, body: JSON.stringify(body) },
    {
      clocks: {
        ...clocks,
        connect_ms: Math.min(clocks.connect_ms, connect_max_ms),
        attempt_ms: Math.min(clocks.attempt_ms, attempt_max_ms),
      },
      event_bytes: configuration.limits.event_bytes,
    },
    time,
    signal,
  );
  const answer = new ProbeAnswer(attempt, time, limit);
  await answer.read();
  return answer;
}

/** The result of a {@link probe}. */
export class ProbeAnswer {
  /** The provider's report. */
  usage: Usage | undefined;
  /** Deltas of the answer. */
  events = 0;
  /** Batches in which they arrived. */
  batches = 0;
  /** Time from the request to the first and the last delta, in milliseconds. */
  first_ms = 0;
  last_ms = 0;
  readonly #attempt: Attempt;
  readonly #time: Time;
  readonly #limit: ProbeRequest['limit'];
  readonly #began_ms: number;
  readonly #reader = new ChatCompletionsReader(() => 0);
  #text = '';
  #texts = 0;
  #finish: string | undefined;

  constructor(attempt: Attempt, time: Time, limit: ProbeRequest['limit']) {
    this.#attempt = attempt;
    this.#time = time;
    this.#limit = limit;
    this.#began_ms = time.now();
  }

  /** Why the answer isn't complete; undefined if it is. */
  get interruption(): Interruption | undefined {
    if (this.#finish !== undefined) return undefined;
    const phase = this.#text === '' ? 'connect' : 'text';
    return classify(this.#attempt.end, phase, this.#time.wall());
  }

  /** Empty without a usable answer. */
  get text(): string {
    return USABLE_FINISHES.has(this.#finish ?? '') ? this.#text.trim() : '';
  }

  /** Samples that identify the provider's dialect. */
  get samples(): Samples {
    return { events: this.#reader.samples, headers: this.#attempt.headers };
  }

  /**
   * Adds the generated tokens to the metrics, as reported or estimated. All of them are paid for, and none are shown.
   */
  account({ tokens }: Pick<Metrics, 'tokens'>): void {
    const completion =
      this.usage === undefined
        ? tokensIn({ deltas: this.#texts, characters: this.#text.length })
        : tokenCount(this.usage.completion_tokens);
    tokens.inc({ kind: 'prompt' }, tokenCount(this.usage?.prompt_tokens));
    tokens.inc({ kind: 'completion' }, completion);
    tokens.inc({ kind: 'repaid' }, completion);
  }

  async read(): Promise<void> {
    if (await this.#attempt.open()) {
      await this.#attempt.read((messages) => {
        const before = this.events;
        for (const message of messages) if (!this.#attempt.isOver) this.#readMessage(message);
        if (this.events > before) this.batches++;
        return undefined;
      });
    }
  }

  #readMessage(message: EventSourceMessage): void {
    const event = this.#reader.read(message);
    switch (event.kind) {
      case 'done':
        this.#attempt.done();
        return;
      case 'error_event':
      case 'bad_finish':
        if (this.#finish === undefined) this.#attempt.stop(event);
        return;
      case 'malformed':
        if (this.#finish === undefined) this.#attempt.stop({ kind: 'malformed_event' });
        return;
      case 'nothing':
        return;
      case 'answer':
        for (const delta of event.deltas) {
          if (delta.kind === 'usage') this.usage = delta.usage;
          else if (delta.kind === 'finish') {
            this.#finish ??= delta.reason;
            this.#attempt.finishWithin(FINISH_WAIT_MS);
          } else this.#progress(delta.kind, delta.kind === 'text' ? delta.text : '');
        }
    }
  }

  #progress(kind: string, text: string): void {
    this.#attempt.progressed(kind === 'reasoning');
    this.last_ms = this.#time.now() - this.#began_ms;
    if (this.events++ === 0) this.first_ms = this.last_ms;
    if (kind !== 'text') return;
    this.#texts++;
    this.#text += text;
    if (this.#limit && this.#text.length > this.#limit.tokens * CHARACTERS_PER_TOKEN_MAX)
      this.#attempt.stop({ kind: 'limit', limit: this.#limit.key });
  }
}
