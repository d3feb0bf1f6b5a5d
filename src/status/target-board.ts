import type { ObservedInterruption } from '../interrupts/interruption.ts';
import { remember } from '../lib/bounded-map.ts';
import type { Time } from '../lib/time.ts';
import type { TargetLabels } from '../metrics/metrics.ts';
import { evidenceDetail } from './evidence-detail.ts';
import type { TargetCounts } from './snapshot.ts';

/** Number of latest samples per target, enough for percentiles that follow the time of day. */
const FIRST_TOKENS_MAX = 100;
/** Routes name at most this many targets; upstreams without a route are added to them. */
const TARGETS_MAX = 1000;

/** One attempt, as far as it reflects the state of its target. */
export interface TargetAttempt {
  /** The attempt has produced something. */
  answered(): void;
  failed(interruption: ObservedInterruption): void;
}

/** Results of attempts by target. Doesn't include clients' model names, so the configuration bounds its size. */
export class TargetBoard {
  readonly #time: Time;
  /** Keyed by upstream and model. */
  readonly #targets = new Map<string, BoardTarget>();

  /** `targets`: the configured ones. */
  constructor(time: Time, targets: Iterable<TargetLabels>) {
    this.#time = time;
    this.configure(targets);
  }

  /** Applies another configuration's targets. The results of targets that remain are kept. */
  configure(targets: Iterable<TargetLabels>): void {
    const before = new Map(this.#targets);
    this.#targets.clear();
    for (const labels of targets) this.#add(labels, before.get(keyOf(labels)));
  }

  /** An attempt begins. `model`: the requested one. */
  begin(upstream: string, model: string): TargetAttempt {
    const target =
      this.#targets.get(keyOf({ upstream, model })) ??
      this.#targets.get(keyOf({ upstream, model: '' })) ??
      this.#add({ upstream, model: '' });
    return target.begin(this.#time);
  }

  read(): readonly (TargetLabels & TargetCounts)[] {
    return Array.from(this.#targets.values(), (target) => target.read());
  }

  #add(labels: TargetLabels, target = new BoardTarget(labels)): BoardTarget {
    remember(this.#targets, keyOf(labels), target, TARGETS_MAX);
    return target;
  }
}

const keyOf = ({ upstream, model }: TargetLabels): string => JSON.stringify([upstream, model]);

class BoardTarget {
  readonly #labels: TargetLabels;
  /** The latest samples, unordered. */
  readonly #first_tokens_ms: number[] = [];
  #answers = 0;
  #attempts = 0;
  #errors = 0;
  #last_failure: TargetCounts['last_failure'];

  constructor(labels: TargetLabels) {
    this.#labels = labels;
  }

  begin(time: Time): TargetAttempt {
    this.#attempts++;
    const began_ms = time.now();
    return {
      answered: () => {
        this.#first_tokens_ms[this.#answers++ % FIRST_TOKENS_MAX] = time.now() - began_ms;
      },
      failed: ({ cause, evidence, status }) => {
        this.#errors++;
        const detail = evidenceDetail(evidence);
        this.#last_failure = {
          at_ms: time.wall(),
          cause,
          evidence: evidence.kind,
          ...(detail !== undefined && { detail }),
          ...(status !== undefined && { status }),
        };
      },
    };
  }

  read(): TargetLabels & TargetCounts {
    const sorted = this.#first_tokens_ms.toSorted((one, other) => one - other);
    const [p50_ms, p95_ms] = [percentile(sorted, 0.5), percentile(sorted, 0.95)];
    return {
      ...this.#labels,
      attempts: this.#attempts,
      errors: this.#errors,
      ...(p50_ms !== undefined && p95_ms !== undefined && { first_token: { p50_ms, p95_ms } }),
      ...(this.#last_failure && { last_failure: this.#last_failure }),
    };
  }
}

/** The smallest value that is at least as large as a `share` of all values. */
function percentile(sorted: readonly number[], share: number): number | undefined {
  const value = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  return value === undefined ? undefined : Math.round(value);
}
