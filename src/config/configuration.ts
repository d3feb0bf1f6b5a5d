import type { ConfiguredLimits } from '../interrupts/clocks.ts';
import type { BreakerLimits } from '../plans/circuit-breaker.ts';
import type { Proof } from '../plans/delta.ts';
import type { DialectName } from './dialect-names.ts';

/** The configuration after flags, environment and file were merged, defaults filled in and everything checked. */
export interface Configuration {
  readonly listen: {
    readonly host: string;
    readonly port: number;
    /** Where it is absent, `adminHost` says which. */
    readonly admin_host?: string;
    readonly admin_port: number;
  };
  /** Keys the owner HMAC and sealing. Generated and kept beside a file store when absent. */
  readonly secret?: string;
  readonly upstreams: Readonly<Record<string, UpstreamConfiguration>>;
  readonly routes: readonly RouteConfiguration[];
  readonly recovery: RecoveryPolicy;
  /** When a target of a route with several counts as down. */
  readonly breaker: BreakerLimits;
  readonly clocks: ClockLimits;
  readonly checkpoint: {
    /** `memory`, `file:<dir>` or a URL of Redis. */
    readonly store: string;
    readonly durability: 'interval' | 'write_ahead';
    readonly interval_ms: number;
    /** Without a sign of life for this long, a replica counts as dead. */
    readonly lease_ms: number;
    readonly on_unreachable: 'fail' | 'warn';
    /** The first seals, all of them open. */
    readonly sealing_keys: readonly string[];
    readonly ttl_s: number;
    /** Of complete runs; never longer than `ttl_s`, which it is where it is absent. */
    readonly complete_ttl_s?: number;
  };
  readonly resume: ResumePolicy;
  readonly limits: Limits;
  readonly status_page: {
    /** Whether the text of answers is shown. */
    readonly content: boolean;
    /** Public names under which it may be asked for. */
    readonly hosts: readonly string[];
  };
  readonly tracing: TracingConfiguration;
  readonly metrics: {
    /** Whether histograms tell the id of the last run of each bucket. */
    readonly exemplars: boolean;
    /** Whether runs are measured under the names of OpenTelemetry, too. */
    readonly gen_ai: boolean;
  };
  readonly log: { readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent' };
}

export interface UpstreamConfiguration {
  readonly base_url: string;
  /** Without it, the address of the provider and what it sends decide. */
  readonly dialect?: DialectName;
  /** Replaces the client's credential; without it the client's own passes through. */
  readonly api_key?: string;
  /** Overrides of the global clocks for this upstream. */
  readonly clocks?: Partial<ClockLimits>;
  /** PEM file of a certificate authority to trust besides the system's, for private upstreams. */
  readonly ca_file?: string;
}

export interface RouteConfiguration {
  /** Exact model name or a pattern with `*`. */
  readonly model: string;
  readonly targets: readonly TargetConfiguration[];
  /** What becomes of requests that ask for no stream. */
  readonly non_streaming: 'recover' | 'pass_through';
  /** Without it, nothing of a conversation is ever left out. */
  readonly compression?: CompressionConfiguration;
}

export interface TargetConfiguration {
  readonly upstream: string;
  /** The model name to ask it for, when it differs from the client's. */
  readonly model?: string;
  /** How much the model takes, prompt and answer together. */
  readonly context_tokens?: number;
}

export interface CompressionConfiguration {
  readonly upstream: string;
  readonly model: string;
  /** The last messages, or items, that stay as they are; at least so many. */
  readonly keep_messages: number;
  readonly summary_tokens: number;
  /** How much the model that summarises takes, prompt and summary together. */
  readonly context_tokens?: number;
}

export type PlanName = 'R1' | 'R2' | 'R3' | 'R4';

export interface RecoveryPolicy {
  readonly plans: readonly PlanName[];
  readonly max_attempts: number;
  /** How often a target that may work again is asked again before another one of its route is. */
  readonly same_target_retries: number;
  readonly tool_proof: Proof;
  /** Whether a call that repeats a settled one is dropped. */
  readonly drop_repeated_calls: boolean;
  readonly seam: 'strict' | 'best_effort';
  /** Whether a model is asked what it makes of a prefix, where that is not known and matters. */
  readonly probe: 'off' | 'on_first_cut';
  readonly backoff_ms: number;
  readonly backoff_max_ms: number;
  /** A target that asks for a longer wait is not asked again by the run. */
  readonly retry_after_max_s: number;
  /** A target that asks for a wait up to this long is waited for, although its route has others. */
  readonly retry_after_wait_s: number;
  /** Tokens that all attempts of a run may generate; without it, a multiple of the request's `max_tokens`. */
  readonly max_work_tokens?: number;
  /** Nothing is asked for any more when a run is this old. */
  readonly deadline_ms?: number;
  /** Give up when nothing new was delivered for this long, counted from the last progress. */
  readonly no_progress_ms: number;
}

/** How a run outlives its client or its replica. */
export interface ResumePolicy {
  /** How long a run with `Holdfast-Resume: 1` goes on without its client. */
  readonly detached_ms: number;
  /** Whether a repeated request is answered with the orphaned run of the first one. */
  readonly match_requests: boolean;
  /** Whether requests that name no thread belong to that of the session they tell of. */
  readonly derive_thread: boolean;
  /** Takeovers in a row without progress, after which a run is given up. */
  readonly max_takeovers: number;
  /** How long an orphan waits for its client before it is finalised as a partial. */
  readonly salvage_after_ms: number;
  /** Whether the model is told about answers and calls that were lost. */
  readonly notices: boolean;
}

/** Whatever is absent is looked for in the standard variables of OpenTelemetry. */
export interface TracingConfiguration {
  /** Base URL of an OTLP receiver. */
  readonly endpoint?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** 0 to 1, of the runs whose client does not say. */
  readonly sample_ratio?: number;
  readonly service_name?: string;
}

/** Those that are absent depend on whether the route has a stand-in. */
export type ClockLimits = ConfiguredLimits;

export interface Limits {
  readonly body_bytes: number;
  readonly header_bytes: number;
  readonly run_bytes: number;
  readonly event_bytes: number;
  /** Client connections open at once. */
  readonly connections: number;
  /** Runs of one credential that this replica delivers at once. */
  readonly runs_per_owner: number;
  readonly header_ms: number;
  readonly request_ms: number;
  readonly keep_alive_ms: number;
  /** A client that takes nothing for this long loses its run. */
  readonly client_stall_ms: number;
  readonly drain_ms: number;
  /** The first part of `drain_ms`, in which new requests are still taken. */
  readonly drain_delay_ms: number;
}
