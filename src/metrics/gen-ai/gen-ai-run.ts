import { tokenCount } from '../../plans/tokens.ts';
import type {
  ObservedAttempt,
  ObservedAttemptEnd,
  ObservedEnd,
  ObservedRun,
  RunObservation,
} from '../../proxy/run/context/run-observer.ts';
import type { GenAiMetrics, OperationLabels } from './gen-ai-metrics.ts';

/** Of providers that do not break it down. */
const MODALITY = { gen_ai_token_modality: 'unknown' } as const;
/** The run continues elsewhere, or it was over before. */
const NOT_ENDED_HERE: ReadonlySet<ObservedEnd['outcome']> = new Set([
  'superseded',
  'handed_over',
  'replayed',
]);
const FAILED: ReadonlySet<ObservedEnd['outcome']> = new Set(['failed', 'rejected']);

interface Operation {
  readonly labels: OperationLabels;
  readonly began_ms: number;
}

/** Measures one run and its attempts. */
export class GenAiRun implements RunObservation {
  readonly #run: ObservedRun;
  readonly #metrics: GenAiMetrics;
  readonly #began_ms: number;
  #upstream: string;
  /** The attempt under way. */
  #operation: Operation | undefined;
  #isAnswered: boolean;
  #error_type: string | undefined;

  constructor(run: ObservedRun, metrics: GenAiMetrics) {
    this.#run = run;
    this.#metrics = metrics;
    this.#began_ms = metrics.time.now();
    this.#upstream = run.upstream;
    // Its client had the first token of another replica.
    this.#isAnswered = run.taken_over !== undefined && run.taken_over.after_event > 0;
  }

  attempt({ upstream, asked_model }: ObservedAttempt): undefined {
    const labels = this.#metrics.labelsOf(this.#run.wire, upstream, asked_model);
    this.#operation = { labels, began_ms: this.#metrics.time.now() };
    this.#upstream = upstream;
  }

  answering(): void {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    this.#metrics.timeToFirstToken.observe(this.#labels, this.#secondsSince(this.#began_ms));
  }

  attemptEnded({ interruption, usage }: ObservedAttemptEnd): void {
    this.#error_type = interruption?.cause;
    const operation = this.#endOperation(interruption?.cause);
    if (!operation || !usage) return;
    const { labels } = operation;
    const { tokenUsage, inputTokens, outputTokens } = this.#metrics;
    const input = tokenCount(usage.prompt_tokens);
    const output = tokenCount(usage.completion_tokens);
    tokenUsage.observe({ ...labels, gen_ai_token_type: 'input' }, input);
    tokenUsage.observe({ ...labels, gen_ai_token_type: 'output' }, output);
    inputTokens.inc({ ...labels, ...MODALITY }, input);
    outputTokens.inc({ ...labels, ...MODALITY }, output);
  }

  planned(): void {}

  recovered(): void {}

  ended({ outcome }: ObservedEnd): void {
    // An attempt that was let go has no other end.
    this.#endOperation('cancelled');
    if (NOT_ENDED_HERE.has(outcome)) return;
    const error_type = outcome === 'cancelled' ? outcome : FAILED.has(outcome) ? this.#error_type : undefined;
    const labels = { ...this.#labels, ...(error_type !== undefined && { error_type }) };
    this.#metrics.requestDuration.observe(labels, this.#secondsSince(this.#began_ms));
  }

  /** Of the run: the upstream that answers it, and the model that its client asked for. */
  get #labels(): OperationLabels {
    return this.#metrics.labelsOf(this.#run.wire, this.#upstream, this.#run.model);
  }

  #endOperation(error_type: string | undefined): Operation | undefined {
    const operation = this.#operation;
    this.#operation = undefined;
    if (!operation) return undefined;
    const labels = { ...operation.labels, ...(error_type !== undefined && { error_type }) };
    this.#metrics.operationDuration.observe(labels, this.#secondsSince(operation.began_ms));
    return operation;
  }

  #secondsSince(began_ms: number): number {
    return (this.#metrics.time.now() - began_ms) / 1000;
  }
}
