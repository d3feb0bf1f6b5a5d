import {
  type CompressionConfiguration,
  type Configuration,
  type HedgeConfiguration,
  isKeyed,
  type RouteConfiguration,
  type TargetConfiguration,
} from '../../config/configuration.ts';
import { ModelPattern } from '../../config/model-pattern.ts';
import { HedgeBudget } from '../../plans/hedge-budget.ts';
import type { Target } from './target.ts';

const NONE: readonly Target[] = [];

/** How to compress conversations with a model if necessary. */
export interface ModelCompression extends Omit<CompressionConfiguration, 'upstream' | 'model' | 'at_share'> {
  /** The target that makes the summary. */
  readonly target: Target & { readonly model: string };
  /** Longer requests are compressed before they are sent; absent: none are. */
  readonly request_tokens_max?: number;
}

/** When to hedge, and how often. */
export interface ModelHedge extends Pick<HedgeConfiguration, 'after_ms' | 'stall_ms'> {
  /** Shared by all runs of the route. */
  readonly budget: HedgeBudget;
}

/** The upstream resources that a request may use. */
export interface RouteUse {
  /** The `model` of the route; `undefined` without one. */
  readonly route?: string;
  /** Whether an operator key could be used. */
  readonly isKeyed: boolean;
}

interface Route {
  readonly use: RouteUse;
  readonly pattern: ModelPattern;
  readonly targets: readonly Target[];
  readonly recoversDocuments: boolean;
  readonly compression?: ModelCompression;
  readonly hedge?: ModelHedge;
  readonly cache_affinity_ms: number;
  readonly tool_calls?: RouteConfiguration['tool_calls'];
}

/** Finds a model's targets: those of the first matching route, or the first upstream if there are no routes. */
export class RouteTable {
  /** For requests without a model, and for every model if no routes are configured. */
  readonly fallback: Target;
  readonly #routes: readonly Route[];

  constructor({ upstreams, routes }: Pick<Configuration, 'upstreams' | 'routes'>) {
    const upstreamOf = (name: string) => {
      const upstream = upstreams[name];
      if (!upstream) throw new Error(`the configuration has no upstream ${name}`);
      return { name, upstream };
    };
    const targetOf = ({ upstream, model, context_tokens }: TargetConfiguration): Target => {
      return {
        ...upstreamOf(upstream),
        ...(model !== undefined && { model }),
        ...(context_tokens !== undefined && { context_tokens }),
      };
    };
    this.fallback = targetOf({ upstream: Object.keys(upstreams)[0] ?? '' });
    const compressionOf = (
      { upstream, model, at_share, ...settings }: CompressionConfiguration,
      [first]: readonly TargetConfiguration[],
    ): ModelCompression => ({
      ...settings,
      target: { ...upstreamOf(upstream), model },
      ...(at_share !== undefined &&
        first?.context_tokens !== undefined && { request_tokens_max: at_share * first.context_tokens }),
    });
    const hedgeOf = ({ max_share, ...waits }: HedgeConfiguration): ModelHedge => ({
      ...waits,
      budget: new HedgeBudget(max_share),
    });
    this.#routes = routes.map(
      ({ model, targets, non_streaming, compression, hedge, cache_affinity_ms, tool_calls }) => ({
        use: {
          route: model,
          isKeyed: [...targets, ...(compression ? [compression] : [])].some(({ upstream }) =>
            isKeyed(upstreamOf(upstream).upstream),
          ),
        },
        pattern: new ModelPattern(model),
        targets: targets.map(targetOf),
        recoversDocuments: non_streaming === 'recover',
        // A single target leaves no choice.
        cache_affinity_ms: targets.length > 1 ? cache_affinity_ms : 0,
        ...(compression && { compression: compressionOf(compression, targets) }),
        ...(hedge && { hedge: hedgeOf(hedge) }),
        ...(tool_calls && { tool_calls }),
      }),
    );
  }

  /** The preferred target; `undefined` if routes are configured and none matches. */
  target(model: string): Target | undefined {
    return this.targets(model)[0];
  }

  /** All targets in order of preference. */
  targets(model: string): readonly Target[] {
    if (this.#routes.length === 0) return [this.fallback];
    return this.#route(model)?.targets ?? NONE;
  }

  /** `model`: `undefined` if the request names none. Returns `undefined` if no route serves it. */
  use(model: string | undefined): RouteUse | undefined {
    if (this.#routes.length === 0 || model === undefined) return { isKeyed: isKeyed(this.fallback.upstream) };
    return this.#route(model)?.use;
  }

  /** Whether requests without a stream are recovered, too. */
  recoversDocuments(model: string): boolean {
    return this.#routes.length === 0 || (this.#route(model)?.recoversDocuments ?? false);
  }

  /** `undefined` if conversations are never compressed. */
  compression(model: string): ModelCompression | undefined {
    return this.#route(model)?.compression;
  }

  /** `undefined` if targets are never hedged. */
  hedge(model: string): ModelHedge | undefined {
    return this.#route(model)?.hedge;
  }

  /** How long a conversation prefers the targets that have it in their prompt cache, in milliseconds; 0 for never. */
  cacheAffinityMs(model: string): number {
    return this.#route(model)?.cache_affinity_ms ?? 0;
  }

  /** `undefined` if the route doesn't set it. */
  toolCalls(model: string): RouteConfiguration['tool_calls'] {
    return this.#route(model)?.tool_calls;
  }

  #route(model: string): Route | undefined {
    return this.#routes.find(({ pattern }) => pattern.matches(model));
  }
}
