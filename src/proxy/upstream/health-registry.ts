import type { BreakerLimits, Configuration } from '../../config/configuration.ts';
import type { TargetLabels, TargetState } from '../../metrics/metrics.ts';
import type { BreakerState } from '../../plans/circuit-breaker.ts';
import type { Target } from './target.ts';
import { TargetHealth } from './target-health.ts';

type Named = Pick<Target, 'name' | 'model'>;

/** Models of one target that clients name themselves and whose health is known; the one asked for longest ago is forgotten. */
const MODELS_MAX = 256;

/** Several models reported under one name: the state of the one that is worst off. */
const WORST_FIRST: readonly BreakerState[] = ['open', 'half_open', 'closed'];

/** A target, and how each of the models that it is asked for is doing. */
interface KnownTarget {
  readonly labels: TargetLabels;
  readonly models: Map<string, TargetHealth>;
}

/** Health by upstream and model, whichever route it is part of: one model that is down takes no other with it. */
export class HealthRegistry {
  readonly #limits: BreakerLimits;
  readonly #targets = new Map<string, KnownTarget>();

  /** Knows all targets that have others beside them. */
  constructor({ breaker, routes }: Pick<Configuration, 'breaker' | 'routes'>) {
    this.#limits = breaker;
    for (const { targets } of routes) {
      if (targets.length < 2) continue;
      for (const { upstream: name, model } of targets)
        this.#target({ name, ...(model !== undefined && { model }) });
    }
  }

  /** `model`: the client's, which the target is asked for unless it has one of its own. */
  of(target: Named, model: string): TargetHealth {
    const { models } = this.#target(target);
    const asked = target.model ?? model;
    const health = models.get(asked) ?? new TargetHealth(this.#limits);
    models.delete(asked);
    models.set(asked, health);
    const [oldest] = models.keys();
    if (models.size > MODELS_MAX && oldest !== undefined) models.delete(oldest);
    return health;
  }

  /** How all of them are doing. Clients' model names are no part of it: the configuration bounds its size. */
  states(now_ms: number): readonly TargetState[] {
    return Array.from(this.#targets.values(), ({ labels, models }) => {
      const states = new Set(Array.from(models.values(), (health) => health.state(now_ms)));
      return { ...labels, state: WORST_FIRST.find((state) => states.has(state)) ?? 'closed' };
    });
  }

  #target(target: Named): KnownTarget {
    const labels = labelsOf(target);
    const key = JSON.stringify(labels);
    const known = this.#targets.get(key) ?? { labels, models: new Map() };
    this.#targets.set(key, known);
    return known;
  }
}

/** A target as metrics name it. */
export const labelsOf = ({ name, model = '' }: Named): TargetLabels => ({ upstream: name, model });
