import type { Logger } from 'pino';
import { isPermanent } from '../../../interrupts/interruption.ts';
import { sleep } from '../../../lib/time.ts';
import { piecesOf, type Saying, summaryRequest } from '../../../plans/compression.ts';
import { charactersIn } from '../../../plans/tokens.ts';
import { questionRequest } from '../../wires/common/dialect.ts';
import { type ProbeAnswer, probe } from '../context/probe.ts';
import type { RunCompression } from '../context/run.ts';
import type { RunContext } from '../context/run-context.ts';

/** Reserved for the instruction around the text to summarise. */
const INSTRUCTION_TOKENS = 300;
/** Per request. */
const TRIES_MAX = 2;
/** More requests would take longer than clients wait. */
const PIECES_MAX = 16;

/** The content to summarise. */
export interface SummaryWanted {
  readonly sayings: readonly Saying[];
  readonly tokens_max: number;
  /** The summary of earlier content, which the new one replaces too. */
  readonly before?: string | undefined;
  /** Time limit for the whole summary, in milliseconds. */
  readonly within_ms?: number;
}

/** Has a model summarise part of a conversation, according to the configuration. */
export class Summariser {
  readonly #settings: RunCompression;
  readonly #context: RunContext;
  readonly #log: Logger;

  constructor(settings: RunCompression, context: RunContext, log: Logger) {
    this.#settings = settings;
    this.#context = context;
    this.#log = log;
  }

  /**
   * `undefined` if there is no summary; the log contains the reason. `signal`: aborts when the run no longer needs it.
   */
  async summarise(
    { sayings, tokens_max, before: known, within_ms = Number.POSITIVE_INFINITY }: SummaryWanted,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { time, configuration } = this.#context;
    const pieces = piecesOf(sayings, this.#pieceCharacters(tokens_max));
    if (pieces.length > PIECES_MAX) return this.#failed({ pieces: pieces.length });
    // A run waits no longer for a summary than for progress in general.
    const until_ms = time.now() + Math.min(within_ms, configuration.recovery.no_progress_ms);
    let before = known;
    for (const piece of pieces) {
      const prompt = summaryRequest({ piece, before, tokens_max });
      before = await this.#insist(() => this.#ask(prompt, tokens_max, until_ms - time.now(), signal), signal);
      if (before === undefined) return undefined;
    }
    return before;
  }

  /** Asks once more after a failure that may be transient. */
  async #insist(ask: () => Promise<ProbeAnswer>, signal: AbortSignal): Promise<string | undefined> {
    const { time, configuration } = this.#context;
    for (let tries = 1; ; tries++) {
      const { interruption, text: summary } = await ask();
      if (signal.aborted) return undefined;
      if (!interruption) return summary === '' ? this.#failed({ empty: true }) : summary;
      // Without the provider's message, which may quote the prompt or the key.
      const { message: _, ...observed } = interruption;
      this.#failed(observed);
      if (tries >= TRIES_MAX || isPermanent(interruption.cause)) return undefined;
      await sleep(time, configuration.recovery.backoff_ms, signal);
    }
  }

  /** Room in one request next to the previous summary and the next one. */
  #pieceCharacters(tokens_max: number): number {
    const { context_tokens = Number.POSITIVE_INFINITY } = this.#settings;
    return charactersIn(context_tokens - 2 * tokens_max - INSTRUCTION_TOKENS);
  }

  async #ask(
    prompt: string,
    tokens_max: number,
    limit_ms: number,
    signal: AbortSignal,
  ): Promise<ProbeAnswer> {
    const { capabilities, metrics } = this.#context;
    const { target } = this.#settings;
    const answer = await probe(
      {
        upstream: target.upstream,
        headers: target.headers,
        body: questionRequest(target.model, prompt, tokens_max, capabilities.dialect(target, target.model)),
        attempt_max_ms: Math.max(1, limit_ms),
        limit: { tokens: tokens_max, key: 'compression.summary_tokens' },
        signal,
      },
      this.#context,
    );
    answer.account(metrics);
    return answer;
  }

  #failed(why: object): undefined {
    const { name: upstream, model } = this.#settings.target;
    this.#log.warn({ ...why, upstream, model }, 'no summary');
  }
}
