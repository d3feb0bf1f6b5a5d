import type { WireName } from '../../checkpoint/journal.ts';
import type { Configuration, UpstreamConfiguration } from '../../config/configuration.ts';
import { ModelPattern } from '../../config/model-pattern.ts';
import { CAUSES } from '../../interrupts/interruption.ts';
import type { Time } from '../../lib/time.ts';
import { tokenCount } from '../../plans/tokens.ts';
import { CHUNK_GAP_BUCKETS } from '../../proxy/run/context/chunk-gaps.ts';
import type {
  ObservedAttempt,
  ObservedAttemptEnd,
  ObservedEnd,
  ObservedRun,
  RunObservation,
  RunObserver,
} from '../../proxy/run/context/run-observer.ts';
import { OPERATIONS, operationOf, providerName, serverOf } from '../../tracing/attributes.ts';
import type { Families, Labels } from '../families.ts';

/** The buckets that the OpenTelemetry conventions recommend, extended for reasoning models. */
const DURATION_BUCKETS = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68,
  655.36, 1310.72,
];
const FIRST_TOKEN_BUCKETS = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 320,
  640,
];
/** The recommended buckets, extended for the first token of reasoning models. */
const FIRST_CHUNK_BUCKETS = DURATION_BUCKETS;
const TOKEN_BUCKETS = [
  1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864,
];

const OPERATION = {
  gen_ai_operation_name: OPERATIONS,
  gen_ai_provider_name: 'provider',
  gen_ai_request_model: 'model',
} as const satisfies Labels<string>;

/** Labels for requests to a provider, including its address. */
const CLIENT = {
  ...OPERATION,
  server_address: 'address',
  server_port: 'port',
} as const satisfies Labels<string>;

const ERROR = { error_type: [...CAUSES, 'cancelled'] } as const satisfies Labels<string>;

/** Label values common to all series of a request. */
type OperationLabels = Readonly<Record<keyof typeof OPERATION, string>>;

/** Label values common to all series of a request to a provider. */
type ClientLabels = Readonly<Record<keyof typeof CLIENT, string>>;

/**
 * Runs and attempts under the names of the OpenTelemetry conventions for generative AI. Towards providers, Holdfast is
 * a client and its operations are attempts; towards its own clients, it is a server and its requests are runs.
 */
export class GenAiMetrics implements RunObserver {
  #names: OperationNames;
  readonly time: Time;
  readonly operationDuration;
  readonly timeToFirstChunk;
  readonly timePerOutputChunk;
  readonly tokenUsage;
  readonly inputTokens;
  readonly outputTokens;
  readonly requestDuration;
  readonly timeToFirstToken;

  constructor(families: Families, configuration: Configuration, time: Time) {
    this.#names = new OperationNames(configuration);
    this.time = time;
    this.operationDuration = families.histogram(
      'gen_ai_client_operation_duration_seconds',
      'Duration of a request to a provider; with an error_type where it did not end well.',
      DURATION_BUCKETS,
      { ...CLIENT, ...ERROR },
    );
    this.timeToFirstChunk = families.histogram(
      'gen_ai_client_operation_time_to_first_chunk_seconds',
      'From a request to a provider to the first chunk that added something to the answer.',
      FIRST_CHUNK_BUCKETS,
      CLIENT,
    );
    this.timePerOutputChunk = families.talliedHistogram(
      'gen_ai_client_operation_time_per_output_chunk_seconds',
      'Between the chunks of a provider that say something, for each one after the first.',
      CHUNK_GAP_BUCKETS,
      CLIENT,
    );
    this.tokenUsage = families.histogram(
      'gen_ai_client_token_usage',
      'Tokens that a provider reported for a request.',
      TOKEN_BUCKETS,
      { ...CLIENT, gen_ai_token_type: ['input', 'output'] },
    );
    this.inputTokens = families.counter(
      'gen_ai_client_inference_usage_input_tokens_total',
      'Input tokens that providers reported.',
      { ...CLIENT, gen_ai_token_modality: ['unknown'] },
    );
    this.outputTokens = families.counter(
      'gen_ai_client_inference_usage_output_tokens_total',
      'Output tokens that providers reported.',
      { ...CLIENT, gen_ai_token_modality: ['unknown'] },
    );
    this.requestDuration = families.histogram(
      'gen_ai_server_request_duration_seconds',
      'Duration of a run as its client saw it, recoveries included; with an error_type where it did not end well.',
      DURATION_BUCKETS,
      { ...OPERATION, ...ERROR },
    );
    this.timeToFirstToken = families.histogram(
      'gen_ai_server_time_to_first_token_seconds',
      'From the beginning of a run to its first token.',
      FIRST_TOKEN_BUCKETS,
      OPERATION,
    );
  }

  /** Names runs that begin from now on according to this configuration. */
  configure(configuration: Configuration): void {
    this.#names = new OperationNames(configuration);
  }

  begin(run: ObservedRun): RunObservation {
    return new GenAiRun(run, this, this.#names);
  }
}

/** Names of operations under one configuration. */
class OperationNames {
  readonly #upstreams: ReadonlyMap<
    string,
    Omit<ClientLabels, 'gen_ai_operation_name' | 'gen_ai_request_model'>
  >;
  readonly #models: ConfiguredModels;

  constructor(configuration: Configuration) {
    this.#upstreams = new Map(
      Object.entries(configuration.upstreams).map(([name, upstream]: [string, UpstreamConfiguration]) => [
        name,
        labelsOfUpstream(name, upstream),
      ]),
    );
    this.#models = new ConfiguredModels(configuration);
  }

  /** Labels of a client's request, whose only address would be this replica's. */
  labelsOf(wire: WireName, upstream: string, model: string): OperationLabels {
    return {
      gen_ai_operation_name: operationOf(wire),
      gen_ai_provider_name: this.#upstreams.get(upstream)?.gen_ai_provider_name ?? '',
      gen_ai_request_model: this.#models.nameOf(model),
    };
  }

  /** Labels of a request to a provider. */
  clientLabelsOf(wire: WireName, upstream: string, model: string): ClientLabels {
    const { server_address = '', server_port = '' } = this.#upstreams.get(upstream) ?? {};
    return { ...this.labelsOf(wire, upstream, model), server_address, server_port };
  }
}

function labelsOfUpstream(name: string, upstream: UpstreamConfiguration) {
  const { address, port } = serverOf(upstream);
  return {
    gen_ai_provider_name: providerName(name, upstream),
    server_address: address,
    server_port: String(port),
  };
}

/** Stands for every model that no route names. */
const OTHER_MODEL = '_OTHER';

/**
 * The name of a model in metrics: as configured, or the pattern of its route, because clients can send any number of
 * names of any length.
 */
class ConfiguredModels {
  readonly #exact: ReadonlySet<string>;
  readonly #patterns: readonly { readonly name: string; readonly pattern: ModelPattern }[];

  constructor({ routes }: Pick<Configuration, 'routes'>) {
    const routed = routes.map(({ model }) => model);
    const asked = routes.flatMap(({ targets }) => targets.flatMap(({ model }) => model ?? []));
    this.#exact = new Set([...routed, ...asked]);
    this.#patterns = routed.map((name) => ({ name, pattern: new ModelPattern(name) }));
  }

  nameOf(model: string): string {
    if (this.#exact.has(model)) return model;
    return this.#patterns.find(({ pattern }) => pattern.matches(model))?.name ?? OTHER_MODEL;
  }
}

/** For providers that don't report it. */
const MODALITY = { gen_ai_token_modality: 'unknown' } as const;
/** The run continues elsewhere, or had already ended. */
const NOT_ENDED_HERE: ReadonlySet<ObservedEnd['outcome']> = new Set([
  'superseded',
  'handed_over',
  'replayed',
]);
const FAILED: ReadonlySet<ObservedEnd['outcome']> = new Set(['failed', 'rejected']);

interface Operation {
  readonly labels: ClientLabels;
  readonly began_ms: number;
}

/** Measures one run and its attempts. */
class GenAiRun implements RunObservation {
  readonly #run: ObservedRun;
  readonly #metrics: GenAiMetrics;
  readonly #names: OperationNames;
  readonly #began_ms: number;
  #upstream: string;
  /** The current attempt. */
  #operation: Operation | undefined;
  #isAnswered: boolean;
  #error_type: string | undefined;

  constructor(run: ObservedRun, metrics: GenAiMetrics, names: OperationNames) {
    this.#run = run;
    this.#metrics = metrics;
    this.#names = names;
    this.#began_ms = metrics.time.now();
    this.#upstream = run.upstream;
    // The client received the first token from another replica.
    this.#isAnswered = run.taken_over !== undefined && run.taken_over.after_event > 0;
  }

  attempt({ upstream, asked_model }: ObservedAttempt): undefined {
    const labels = this.#names.clientLabelsOf(this.#run.wire, upstream, asked_model);
    this.#operation = { labels, began_ms: this.#metrics.time.now() };
    this.#upstream = upstream;
  }

  answering(): void {
    if (this.#operation) {
      const { labels, began_ms } = this.#operation;
      this.#metrics.timeToFirstChunk.observe(labels, this.#secondsSince(began_ms));
    }
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    this.#metrics.timeToFirstToken.observe(this.#labels, this.#secondsSince(this.#began_ms));
  }

  attemptEnded({ interruption, usage, chunk_gaps }: ObservedAttemptEnd): void {
    this.#error_type = interruption?.cause;
    const operation = this.#endOperation(interruption?.cause);
    if (!operation) return;
    const { labels } = operation;
    if (chunk_gaps) this.#metrics.timePerOutputChunk.add(labels, chunk_gaps);
    if (!usage) return;
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
    // An abandoned attempt reports no end itself.
    this.#endOperation('cancelled');
    if (NOT_ENDED_HERE.has(outcome)) return;
    const error_type = outcome === 'cancelled' ? outcome : FAILED.has(outcome) ? this.#error_type : undefined;
    const labels = { ...this.#labels, ...(error_type !== undefined && { error_type }) };
    this.#metrics.requestDuration.observe(labels, this.#secondsSince(this.#began_ms));
  }

  /** Labels of the run: the answering upstream and the model that the client requested. */
  get #labels(): OperationLabels {
    return this.#names.labelsOf(this.#run.wire, this.#upstream, this.#run.model);
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
