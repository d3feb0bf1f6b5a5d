import type { UpstreamConfiguration } from '../../config/configuration.ts';
import type { TargetHealth } from './target-health.ts';

/** Where a run is sent: an upstream, and the model to request if it differs from the client's. */
export interface Target {
  readonly name: string;
  readonly upstream: UpstreamConfiguration;
  readonly model?: string;
  /** The model's context size, if configured. */
  readonly context_tokens?: number;
}

/** A target with what a run needs to ask it. */
export interface RunTarget extends Target {
  /**
   * Request headers for the upstream: without hop-by-hop, `host`, `content-length` and `holdfast-*`, with the
   * credential.
   */
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** Shared by all runs; absent if there is no alternative target. */
  readonly health?: TargetHealth;
}
