import type { WireName } from '../../checkpoint/journal.ts';
import type { Configuration, UpstreamConfiguration } from '../../config/configuration.ts';
import { CAUSES } from '../../interrupts/interruption.ts';
import type { Time } from '../../lib/time.ts';
import type { ObservedRun, RunObservation, RunObserver } from '../../proxy/run/context/run-observer.ts';
import { providerName } from '../../tracing/provider-name.ts';
import { GEN_AI_DURATION_BUCKETS, GEN_AI_FIRST_TOKEN_BUCKETS, GEN_AI_TOKEN_BUCKETS } from '../buckets.ts';
import type { Families, Labels } from '../families.ts';
import { ConfiguredModels } from './configured-models.ts';
import { GenAiRun } from './gen-ai-run.ts';

const OPERATIONS: Readonly<Record<WireName, string>> = {
  chat_completions: 'chat',
  completions: 'text_completion',
  messages: 'chat',
  responses: 'chat',
};

const OPERATION = {
  gen_ai_operation_name: ['chat', 'text_completion'],
  gen_ai_provider_name: 'provider',
  gen_ai_request_model: 'model',
} as const satisfies Labels<string>;

const ERROR = { ...OPERATION, error_type: [...CAUSES, 'cancelled'] } as const satisfies Labels<string>;

/** What every series of an operation says of it. */
export type OperationLabels = Readonly<Record<keyof typeof OPERATION, string>>;

/**
 * Runs and attempts under the names of the OpenTelemetry conventions for generative AI: towards providers Holdfast is a
 * client, whose operations are attempts, and towards its own clients a server, whose requests are runs.
 */
export class GenAiMetrics implements RunObserver {
  readonly #upstreams: ReadonlyMap<string, string>;
  readonly #models: ConfiguredModels;
  readonly time: Time;
  readonly operationDuration;
  readonly tokenUsage;
  readonly inputTokens;
  readonly outputTokens;
  readonly requestDuration;
  readonly timeToFirstToken;

  constructor(families: Families, configuration: Configuration, time: Time) {
    const { upstreams } = configuration;
    this.#upstreams = new Map(
      Object.entries(upstreams).map(([name, upstream]: [string, UpstreamConfiguration]) => [
        name,
        providerName(name, upstream),
      ]),
    );
    this.#models = new ConfiguredModels(configuration);
    this.time = time;
    this.operationDuration = families.histogram(
      'gen_ai_client_operation_duration_seconds',
      'Duration of a request to a provider; with an error_type where it did not end well.',
      GEN_AI_DURATION_BUCKETS,
      ERROR,
    );
    this.tokenUsage = families.histogram(
      'gen_ai_client_token_usage',
      'Tokens that a provider reported for a request.',
      GEN_AI_TOKEN_BUCKETS,
      { ...OPERATION, gen_ai_token_type: ['input', 'output'] },
    );
    this.inputTokens = families.counter(
      'gen_ai_client_inference_usage_input_tokens_total',
      'Input tokens that providers reported.',
      { ...OPERATION, gen_ai_token_modality: ['unknown'] },
    );
    this.outputTokens = families.counter(
      'gen_ai_client_inference_usage_output_tokens_total',
      'Output tokens that providers reported.',
      { ...OPERATION, gen_ai_token_modality: ['unknown'] },
    );
    this.requestDuration = families.histogram(
      'gen_ai_server_request_duration_seconds',
      'Duration of a run as its client saw it, recoveries included; with an error_type where it did not end well.',
      GEN_AI_DURATION_BUCKETS,
      ERROR,
    );
    this.timeToFirstToken = families.histogram(
      'gen_ai_server_time_to_first_token_seconds',
      'From the beginning of a run to its first token.',
      GEN_AI_FIRST_TOKEN_BUCKETS,
      OPERATION,
    );
  }

  begin(run: ObservedRun): RunObservation {
    return new GenAiRun(run, this);
  }

  labelsOf(wire: WireName, upstream: string, model: string): OperationLabels {
    return {
      gen_ai_operation_name: OPERATIONS[wire],
      gen_ai_provider_name: this.#upstreams.get(upstream) ?? '',
      gen_ai_request_model: this.#models.nameOf(model),
    };
  }
}
