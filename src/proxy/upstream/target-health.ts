import { isDeepStrictEqual } from 'node:util';
import type { BreakerLimits, Configuration } from '../../config/configuration.ts';
import { remember } from '../../lib/bounded-map.ts';
import type { TargetLabels, TargetState } from '../../metrics/metrics.ts';
import { type BreakerState, CircuitBreaker } from '../../plans/circuit-breaker.ts';
import type { Target } from './target.ts';

/** Models of one target that clients name themselves and whose health is known; the one asked for longest ago is forgotten. */
const MODELS_MAX = 256;

/** Of one model; the one that was heard of longest ago is forgotten. */
const CONVERSATIONS_MAX = 10_000;

/** Several models reported under one name: the state of the one that is worst off. */
const WORST_FIRST: readonly BreakerState[] = ['open', 'half_open', 'closed'];

type Named = Pick<Target, 'name' | 'model'>;

/** How a target has been doing lately, as all runs of this process know it. Times in milliseconds, monotonic. */
export class TargetHealth {
  readonly #breaker: CircuitBreaker;
  #ready_at_ms = Number.NEGATIVE_INFINITY;
  #thinks: boolean = false;
  /** When it was last seen that the target has a conversation in its prompt cache; the oldest first. */
  readonly #cached_ms = new Map<string, number>();

  constructor(limits: BreakerLimits) {
    this.#breaker = new CircuitBreaker(limits);
  }

  /** It has asked not to be asked before. */
  get ready_at_ms(): number {
    return this.#ready_at_ms;
  }

  /** Its model was seen to think: silence means less of it. */
  get thinks(): boolean {
    return this.#thinks;
  }

  noteThinking(): void {
    this.#thinks = true;
  }

  /** It has read the conversation from its prompt cache, or put it there. */
  noteCached(conversation: string, now_ms: number): void {
    remember(this.#cached_ms, conversation, now_ms, CONVERSATIONS_MAX);
  }

  /** It was seen since then to have the conversation in its prompt cache. */
  hasCached(conversation: string, since_ms: number): boolean {
    return (this.#cached_ms.get(conversation) ?? Number.NEGATIVE_INFINITY) >= since_ms;
  }

  leaveAlone(until_ms: number): void {
    this.#ready_at_ms = Math.max(this.#ready_at_ms, until_ms);
  }

  state(now_ms: number): BreakerState {
    return this.#breaker.state(now_ms);
  }

  /** Others should be asked first. */
  isDoubted(now_ms: number): boolean {
    return !this.#breaker.admits(now_ms);
  }

  /** An attempt begins. The caller must report how it ends. */
  ask(now_ms: number): HealthProbe {
    return new HealthProbe(this.#breaker, now_ms);
  }
}

/** One attempt, as far as it shows the health of its target. */
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

  /** True if the target counts as up again since. */
  answered(now_ms: number): boolean {
    if (this.#answered) return false;
    this.#answered = true;
    return this.#breaker.succeeded(now_ms);
  }

  /** True if the target counts as down since. */
  failed(now_ms: number): boolean {
    return this.#breaker.failed({
      began_ms: this.#began_ms,
      now_ms,
      answered: this.#answered,
      probe: this.#probe,
    });
  }

  /** Nothing more is to be learnt from it. */
  end(): void {
    if (this.#probe) this.#breaker.release(this.#began_ms);
  }
}

/** A target, and how each of the models that it is asked for is doing. */
interface KnownTarget {
  readonly labels: TargetLabels;
  readonly models: Map<string, TargetHealth>;
}

/** The health of targets under the configuration before this one. */
interface KnownHealth {
  readonly registry: HealthRegistry;
  /** The upstream of this name is still the same one. */
  readonly isSame: (upstream: string) => boolean;
}

/** Health by upstream and model, whichever route it is part of: one model that is down takes no other with it. */
export class HealthRegistry {
  readonly #limits: BreakerLimits;
  readonly #targets = new Map<string, KnownTarget>();

  /** Knows all targets that have others beside them. `known`: what there is to keep of a registry before this one. */
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

  /** `model`: the client's, which the target is asked for unless it has one of its own. */
  of(target: Named, model: string): TargetHealth {
    const { models } = this.#target(target);
    const asked = target.model ?? model;
    const health = models.get(asked) ?? new TargetHealth(this.#limits);
    remember(models, asked, health, MODELS_MAX);
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
