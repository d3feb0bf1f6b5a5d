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

/** How conversations with a model are put in fewer words if they have to be. */
export interface ModelCompression extends Omit<CompressionConfiguration, 'upstream' | 'model' | 'at_share'> {
  /** The target that makes the summary. */
  readonly target: Target & { readonly model: string };
  /** A longer request is put in fewer words before it is sent; none is, without it. */
  readonly request_tokens_max?: number;
}

/** When another target is asked as well, and how often it may be. */
export interface ModelHedge extends Pick<HedgeConfiguration, 'after_ms' | 'stall_ms'> {
  /** Shared by all runs of the route. */
  readonly budget: HedgeBudget;
}

/** What a request may use of the upstreams. */
export interface RouteUse {
  /** The `model` of the route; `undefined` without one. */
  readonly route?: string;
  /** A key of the operator's could be spent. */
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

/** Finds the targets of a model: those of the first route that matches, or the first upstream where there are no routes. */
export class RouteTable {
  /** For requests that name no model, and for every model when no routes are configured. */
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
        // With one target there is nothing to choose.
        cache_affinity_ms: targets.length > 1 ? cache_affinity_ms : 0,
        ...(compression && { compression: compressionOf(compression, targets) }),
        ...(hedge && { hedge: hedgeOf(hedge) }),
        ...(tool_calls && { tool_calls }),
      }),
    );
  }

  /** The preferred one; `undefined` when routes are configured and none of them matches. */
  target(model: string): Target | undefined {
    return this.targets(model)[0];
  }

  /** All of them in order of preference. */
  targets(model: string): readonly Target[] {
    if (this.#routes.length === 0) return [this.fallback];
    return this.#route(model)?.targets ?? NONE;
  }

  /** `model`: `undefined` where none is named. Returns `undefined` where no route serves it. */
  use(model: string | undefined): RouteUse | undefined {
    if (this.#routes.length === 0 || model === undefined) return { isKeyed: isKeyed(this.fallback.upstream) };
    return this.#route(model)?.use;
  }

  /** Whether requests that ask for no stream are recovered, too. */
  recoversDocuments(model: string): boolean {
    return this.#routes.length === 0 || (this.#route(model)?.recoversDocuments ?? false);
  }

  /** `undefined` where nothing of a conversation is ever left out. */
  compression(model: string): ModelCompression | undefined {
    return this.#route(model)?.compression;
  }

  /** `undefined` where no target is asked beside another. */
  hedge(model: string): ModelHedge | undefined {
    return this.#route(model)?.hedge;
  }

  /** How long a conversation goes back to the targets that have it in their prompt cache; 0 for never. */
  cacheAffinityMs(model: string): number {
    return this.#route(model)?.cache_affinity_ms ?? 0;
  }

  /** `undefined` where the route leaves it open. */
  toolCalls(model: string): RouteConfiguration['tool_calls'] {
    return this.#route(model)?.tool_calls;
  }

  #route(model: string): Route | undefined {
    return this.#routes.find(({ pattern }) => pattern.matches(model));
  }
}
