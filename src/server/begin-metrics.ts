import type { Store } from '../checkpoint/store.ts';
import type { Configuration } from '../config/configuration.ts';
import type { Time } from '../lib/time.ts';
import { GenAiMetrics } from '../metrics/gen-ai/gen-ai-metrics.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { RunObserver } from '../proxy/run/context/run-observer.ts';

/** Makes the metrics those of this configuration. Returns who has to be told of runs for them. */
export function beginMetrics(
  metrics: Metrics,
  configuration: Configuration,
  store: Store,
  time: Time,
): readonly RunObserver[] {
  const { exemplars, gen_ai } = configuration.metrics;
  metrics.exemplars = exemplars;
  const observers = gen_ai ? [new GenAiMetrics(metrics.families, configuration, time)] : [];
  metrics.begin({ upstream: Object.keys(configuration.upstreams), store: [store.name] });
  return observers;
}
