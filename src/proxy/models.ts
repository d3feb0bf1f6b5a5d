import type { Configuration, TargetConfiguration } from '../config/configuration.ts';
import { ModelPattern } from './model-pattern.ts';
import type { Target } from './run.ts';

const NONE: readonly Target[] = [];

/** Finds the targets of a model: those of the first route that matches, or the first upstream where there are no routes. */
export class Models {
  /** For requests that name no model, and for every model when no routes are configured. */
  readonly fallback: Target;
  readonly #routes: readonly { readonly pattern: ModelPattern; readonly targets: readonly Target[] }[];

  constructor({ upstreams, routes }: Pick<Configuration, 'upstreams' | 'routes'>) {
    const targetOf = ({ upstream: name, model, context_tokens }: TargetConfiguration): Target => {
      const upstream = upstreams[name];
      if (!upstream) throw new Error(`the configuration has no upstream ${name}`);
      return {
        name,
        upstream,
        ...(model !== undefined && { model }),
        ...(context_tokens !== undefined && { context_tokens }),
      };
    };
    this.fallback = targetOf({ upstream: Object.keys(upstreams)[0] ?? '' });
    this.#routes = routes.map(({ model, targets }) => ({
      pattern: new ModelPattern(model),
      targets: targets.map(targetOf),
    }));
  }

  /** The preferred one; `undefined` when routes are configured and none of them matches. */
  target(model: string): Target | undefined {
    return this.targets(model)[0];
  }

  /** All of them in order of preference. */
  targets(model: string): readonly Target[] {
    if (this.#routes.length === 0) return [this.fallback];
    return this.#routes.find(({ pattern }) => pattern.matches(model))?.targets ?? NONE;
  }
}
