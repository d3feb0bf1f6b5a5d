import type { Proof } from '../plans/delta.ts';
import type { DialectName } from './dialect-names.ts';

/** The configuration after flags, environment and file were merged, defaults filled in and everything checked. */
export interface Configuration {
  readonly listen: { readonly host: string; readonly port: number; readonly admin_port: number };
  /** Keys the owner HMAC and sealing. Generated and kept beside a file store when absent. */
  readonly secret?: string;
  readonly upstreams: Readonly<Record<string, UpstreamConfiguration>>;
  readonly routes: readonly RouteConfiguration[];
  readonly recovery: RecoveryPolicy;
  readonly clocks: ClockLimits;
  readonly checkpoint: {
    /** `memory` or `file:<dir>`. */
    readonly store: string;
    readonly durability: 'interval' | 'write_ahead';
    readonly interval_ms: number;
    readonly ttl_s: number;
  };
  readonly limits: Limits;
  readonly log: { readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent' };
}

export interface UpstreamConfiguration {
  readonly base_url: string;
  readonly dialect: DialectName;
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
  readonly targets: readonly { readonly upstream: string; readonly model?: string }[];
}

export type PlanName = 'R1' | 'R2' | 'R3' | 'R4';

export interface RecoveryPolicy {
  readonly plans: readonly PlanName[];
  readonly max_attempts: number;
  readonly tool_proof: Proof;
  readonly backoff_ms: number;
  readonly backoff_max_ms: number;
  readonly retry_after_max_s: number;
  /** Give up when nothing new was delivered for this long, counted from the last progress. */
  readonly no_progress_ms: number;
}

export interface ClockLimits {
  readonly connect_ms: number;
  readonly first_byte_ms: number;
  readonly first_token_ms: number;
  readonly idle_ms: number;
  readonly progress_ms: number;
  /** Used instead of `progress_ms` while the model is reasoning. */
  readonly progress_reasoning_ms: number;
  readonly attempt_ms: number;
}

export interface Limits {
  readonly body_bytes: number;
  readonly header_bytes: number;
  readonly run_bytes: number;
  readonly event_bytes: number;
  /** Client connections open at once. */
  readonly connections: number;
  readonly header_ms: number;
  readonly request_ms: number;
  readonly keep_alive_ms: number;
  /** A client that takes nothing for this long loses its run. */
  readonly client_stall_ms: number;
  readonly drain_ms: number;
}
