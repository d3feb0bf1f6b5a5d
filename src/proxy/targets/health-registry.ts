import type { Configuration } from '../../config/configuration.ts';
import type { TargetLabels, TargetState } from '../../metrics.ts';
import type { BreakerLimits } from '../../plans/circuit-breaker.ts';
import type { Target } from '../run.ts';
import { TargetHealth } from './target-health.ts';

type Named = Pick<Target, 'name' | 'model'>;

/** Health by target, whichever route it is part of. The configuration bounds their number: clients' model names are no part of it. */
export class HealthRegistry {
  readonly #limits: BreakerLimits;
  readonly #targets = new Map<string, { readonly labels: TargetLabels; readonly health: TargetHealth }>();

  /** Knows all targets that have others beside them. */
  constructor({ breaker, routes }: Pick<Configuration, 'breaker' | 'routes'>) {
    this.#limits = breaker;
    for (const { targets } of routes) {
      if (targets.length < 2) continue;
      for (const { upstream: name, model } of targets)
        this.of({ name, ...(model !== undefined && { model }) });
    }
  }

  of(target: Named): TargetHealth {
    const labels = labelsOf(target);
    const key = JSON.stringify(labels);
    const known = this.#targets.get(key);
    if (known) return known.health;
    const health = new TargetHealth(this.#limits);
    this.#targets.set(key, { labels, health });
    return health;
  }

  /** How all of them are doing. */
  states(now_ms: number): readonly TargetState[] {
    return Array.from(this.#targets.values(), ({ labels, health }) => ({
      ...labels,
      state: health.state(now_ms),
    }));
  }
}

/** A target as metrics name it. */
export const labelsOf = ({ name, model = '' }: Named): TargetLabels => ({ upstream: name, model });
