import type { BreakerLimits } from '../../plans/circuit-breaker.ts';
import type { Target } from '../run.ts';
import { TargetHealth } from './target-health.ts';

/** Health by target, whichever route it is part of. The configuration bounds their number: clients' model names are no part of it. */
export class HealthRegistry {
  readonly #limits: BreakerLimits;
  readonly #targets = new Map<string, TargetHealth>();

  constructor(limits: BreakerLimits) {
    this.#limits = limits;
  }

  of({ name, model }: Target): TargetHealth {
    const key = JSON.stringify([name, model]);
    const known = this.#targets.get(key);
    if (known) return known;
    const health = new TargetHealth(this.#limits);
    this.#targets.set(key, health);
    return health;
  }
}
