import type { Configuration } from '../../config/configuration.ts';
import { ModelPattern } from '../../config/model-pattern.ts';

/** Stands for every name that no route knows. */
const OTHER_MODEL = '_OTHER';

/**
 * What a model is called in metrics: as the configuration names it, or by the pattern of the route that it falls under.
 * Clients come up with any number of names, of any length.
 */
export class ConfiguredModels {
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
