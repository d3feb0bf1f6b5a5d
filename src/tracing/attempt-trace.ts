import { type Span, SpanStatusCode } from '@opentelemetry/api';
import type { Usage } from '../plans/delta.ts';
import type { ObservedAttemptEnd } from '../proxy/run/context/run-observer.ts';
import { ATTRIBUTE, EVENT } from './attribute-names.ts';

/** The span of one upstream request. */
export class AttemptTrace {
  readonly #span: Span;
  readonly #began_ms = performance.now();
  /** When it said the first that became part of the answer, by `performance.now()`. */
  answered_at_ms: number | undefined;

  constructor(span: Span) {
    this.#span = span;
  }

  answering(): void {
    this.answered_at_ms = performance.now();
    this.#span.setAttribute(ATTRIBUTE.timeToFirstChunk, (this.answered_at_ms - this.#began_ms) / 1000);
    this.#span.addEvent(EVENT.firstContent);
  }

  end({ outcome, added, seam, interruption, usage, answer_id }: ObservedAttemptEnd): void {
    this.#span.setAttributes({
      [ATTRIBUTE.outcome]: outcome,
      [ATTRIBUTE.added]: added,
      ...(seam !== undefined && { [ATTRIBUTE.seam]: seam }),
      ...(answer_id !== undefined && { [ATTRIBUTE.responseId]: answer_id }),
      ...(usage && usageAttributes(usage)),
    });
    if (interruption) {
      const { cause, status } = interruption;
      this.#span.setAttribute(ATTRIBUTE.errorType, cause);
      if (status !== undefined) this.#span.setAttribute(ATTRIBUTE.status, status);
      this.#span.setStatus({ code: SpanStatusCode.ERROR });
    }
    this.#span.end();
  }

  /** It was let go before it had ended: its client has left, or its replica shuts down. */
  abandon(): void {
    this.#span.setAttribute(ATTRIBUTE.outcome, 'abandoned');
    this.#span.end();
  }
}

const usageAttributes = ({ prompt_tokens, completion_tokens }: Usage) => ({
  [ATTRIBUTE.inputTokens]: prompt_tokens,
  [ATTRIBUTE.outputTokens]: completion_tokens,
});
