import type { UpstreamConfiguration } from '../../config/configuration.ts';
import type { TargetHealth } from './target-health.ts';

/** Where a run is sent: one upstream, and the model name to ask it for when it differs from the client's. */
export interface Target {
  readonly name: string;
  readonly upstream: UpstreamConfiguration;
  readonly model?: string;
  /** How much the model takes, where that was declared. */
  readonly context_tokens?: number;
}

/** A target as a run asks it. */
export interface RunTarget extends Target {
  /** Request headers to send upstream: hop-by-hop, `host`, `content-length` and `holdfast-*` removed, credential in place. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** Shared by all runs; absent where there is no other target to ask. */
  readonly health?: TargetHealth;
}
