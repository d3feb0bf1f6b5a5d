import { isDeepStrictEqual } from 'node:util';
import type { BreakerLimits, Configuration } from '../../config/configuration.ts';
import { remember } from '../../lib/bounded-map.ts';
import type { TargetLabels, TargetState } from '../../metrics/metrics.ts';
import { type BreakerState, CircuitBreaker } from '../../plans/circuit-breaker.ts';
import type { Target } from './target.ts';

/** Client-named models per target whose health is tracked; the least recently used is dropped. */
const MODELS_MAX = 256;

/** Per model; the least recently noted is dropped. */
const CONVERSATIONS_MAX = 10_000;

/** If several models share a label, the worst state is reported. */
const WORST_FIRST: readonly BreakerState[] = ['open', 'half_open', 'closed'];

type Named = Pick<Target, 'name' | 'model'>;

/** The recent health of a target, shared by all runs of this process. Times in milliseconds, monotonic. */
export class TargetHealth {
  readonly #breaker: CircuitBreaker;
  #ready_at_ms = Number.NEGATIVE_INFINITY;
  #thinks: boolean = false;
  /** When each conversation was last seen in the target's prompt cache, oldest first. */
  readonly #cached_ms = new Map<string, number>();

  constructor(limits: BreakerLimits) {
    this.#breaker = new CircuitBreaker(limits);
  }

  /** Do not ask it before this time. */
  get ready_at_ms(): number {
    return this.#ready_at_ms;
  }

  /** Its model has produced reasoning, so silence is less significant. */
  get thinks(): boolean {
    return this.#thinks;
  }

  noteThinking(): void {
    this.#thinks = true;
  }

  /** Records that the target read the conversation from its prompt cache, or wrote it there. */
  noteCached(conversation: string, now_ms: number): void {
    remember(this.#cached_ms, conversation, now_ms, CONVERSATIONS_MAX);
  }

  /** Whether the conversation was seen in the target's prompt cache since that time. */
  hasCached(conversation: string, since_ms: number): boolean {
    return (this.#cached_ms.get(conversation) ?? Number.NEGATIVE_INFINITY) >= since_ms;
  }

  leaveAlone(until_ms: number): void {
    this.#ready_at_ms = Math.max(this.#ready_at_ms, until_ms);
  }

  state(now_ms: number): BreakerState {
    return this.#breaker.state(now_ms);
  }

  /** Whether other targets should be asked first. */
  isDoubted(now_ms: number): boolean {
    return !this.#breaker.admits(now_ms);
  }

  /** Begins an attempt. The caller must report its end. */
  ask(now_ms: number): HealthProbe {
    return new HealthProbe(this.#breaker, now_ms);
  }
}

/** The health-related result of one attempt. */
export class HealthProbe {
  readonly #breaker: CircuitBreaker;
  readonly #began_ms: number;
  readonly #probe: boolean;
  #answered = false;

  constructor(breaker: CircuitBreaker, now_ms: number) {
    this.#breaker = breaker;
    this.#began_ms = now_ms;
    this.#probe = breaker.begin(now_ms);
  }

  /** Returns true if this brought the target back up. */
  answered(now_ms: number): boolean {
    if (this.#answered) return false;
    this.#answered = true;
    return this.#breaker.succeeded(now_ms);
  }

  /** Returns true if this took the target down. */
  failed(now_ms: number): boolean {
    return this.#breaker.failed({
      began_ms: this.#began_ms,
      now_ms,
      answered: this.#answered,
      probe: this.#probe,
    });
  }

  /** Ends the probe. */
  end(): void {
    if (this.#probe) this.#breaker.release(this.#began_ms);
  }
}

/** A target and the health of each model requested from it. */
interface KnownTarget {
  readonly labels: TargetLabels;
  readonly models: Map<string, TargetHealth>;
}

/** The health of targets under the previous configuration. */
interface KnownHealth {
  readonly registry: HealthRegistry;
  /** Whether the upstream of this name is unchanged. */
  readonly isSame: (upstream: string) => boolean;
}

/** Health per upstream and model, shared across routes: a model that is down doesn't affect the others. */
export class HealthRegistry {
  readonly #limits: BreakerLimits;
  readonly #targets = new Map<string, KnownTarget>();

  /**
   * Registers all targets of routes with alternatives. `known`: the previous registry, whose state is kept where it
   * still applies.
   */
  constructor({ breaker, routes }: Pick<Configuration, 'breaker' | 'routes'>, known?: KnownHealth) {
    this.#limits = breaker;
    for (const { targets } of routes) {
      if (targets.length < 2) continue;
      for (const { upstream: name, model } of targets)
        this.#target({ name, ...(model !== undefined && { model }) });
    }
    if (!known || !isDeepStrictEqual(known.registry.#limits, breaker)) return;
    for (const [key, target] of known.registry.#targets)
      if (this.#targets.has(key) && known.isSame(target.labels.upstream)) this.#targets.set(key, target);
  }

  /** `model`: the client's model, which applies unless the target names its own. */
  of(target: Named, model: string): TargetHealth {
    const { models } = this.#target(target);
    const asked = target.model ?? model;
    const health = models.get(asked) ?? new TargetHealth(this.#limits);
    remember(models, asked, health, MODELS_MAX);
    return health;
  }

  /** The state of all targets. Excludes model names from clients, so that the configuration bounds its size. */
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

/** A target's metric labels. */
export const labelsOf = ({ name, model = '' }: Named): TargetLabels => ({ upstream: name, model });
