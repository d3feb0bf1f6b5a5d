import type { Configuration } from '../config/configuration.ts';
import { ModelPattern } from './model-pattern.ts';
import type { Target } from './run.ts';

/** Finds the target of a model: the first route that matches, or the first upstream where there are no routes. */
export class Models {
  /** For requests that name no model, and for every model when no routes are configured. */
  readonly fallback: Target;
  readonly #routes: readonly { readonly pattern: ModelPattern; readonly target: Target }[];

  constructor({ upstreams, routes }: Pick<Configuration, 'upstreams' | 'routes'>) {
    const targetOf = (name: string, model?: string): Target => {
      const upstream = upstreams[name];
      if (!upstream) throw new Error(`the configuration has no upstream ${name}`);
      return { name, upstream, ...(model !== undefined && { model }) };
    };
    this.fallback = targetOf(Object.keys(upstreams)[0] ?? '');
    this.#routes = routes.flatMap(({ model, targets: [first] }) =>
      first ? [{ pattern: new ModelPattern(model), target: targetOf(first.upstream, first.model) }] : [],
    );
  }

  /** `undefined` when routes are configured and none of them matches. */
  target(model: string): Target | undefined {
    if (this.#routes.length === 0) return this.fallback;
    return this.#routes.find(({ pattern }) => pattern.matches(model))?.target;
  }
}
