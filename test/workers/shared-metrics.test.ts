import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RunId } from '../../src/checkpoint/store.ts';
import { expositionOf } from '../../src/metrics/families.ts';
import { Metrics } from '../../src/metrics/metrics.ts';
import { type MetricPart, SharedMetrics } from '../../src/workers/shared-metrics.ts';

const partOf = async ({ registry }: Metrics): Promise<MetricPart> =>
  structuredClone(await registry.getMetricsAsJSON()) as unknown as MetricPart;

const ENDED = { wire: 'messages', outcome: 'complete' };
const RUN: RunId = 'run_AAAAAAAAAAAAAAAAAAAAAA';

const OPEN_METRICS = 'application/openmetrics-text';

/** A supervisor's metrics, shared with any number of workers. */
function share() {
  const own = new Metrics();
  own.ready = () => false;
  own.begin({});
  const shared = new SharedMetrics(() => partOf(own));
  const read = async (accept?: string) => (await expositionOf(await shared.registry(), accept)).body;
  const value = async (series: string) => {
    const line = (await read()).split('\n').find((each) => each.startsWith(`${series} `));
    return line === undefined ? undefined : Number(line.slice(series.length));
  };
  return { own, shared, read, value };
}

const RUNS = 'holdfast_runs_total{wire="messages",outcome="complete"}';

describe('the metrics of several workers', () => {
  it('are their sums, where they count', async () => {
    const { shared, value } = share();
    for (const worker of [1, 2]) {
      const metrics = new Metrics();
      metrics.runs.inc(ENDED, worker);
      metrics.activeRuns.set(10 * worker);
      metrics.recoveryGap.observe(metrics.ofRun(RUN, 'a', worker));
      shared.heard(worker, await partOf(metrics));
    }
    expect(await value(RUNS)).toBe(3);
    expect(await value('holdfast_runs_active')).toBe(30);
    expect(await value('holdfast_recovery_gap_seconds_bucket{le="1",upstream="a"}')).toBe(1);
    expect(await value('holdfast_recovery_gap_seconds_count{upstream="a"}')).toBe(2);
  });

  it('say of a state what is worse, or that of the supervisor', async () => {
    const { own, shared, value } = share();
    own.observeProcess();
    own.configLastReloadSuccessful.set(0);
    own.configReloads.inc({ outcome: 'applied' });
    for (const worker of [1, 2]) {
      const metrics = new Metrics();
      metrics.storeWorks = worker === 1;
      metrics.ready = () => worker === 2;
      metrics.configLastReloadSuccessful.set(1);
      metrics.configReloads.inc({ outcome: 'applied' });
      metrics.targets = () => [{ upstream: 'a', model: '', state: worker === 1 ? 'closed' : 'open' }];
      shared.heard(worker, await partOf(metrics));
    }
    expect(await value('holdfast_store_up')).toBe(0);
    expect(await value('holdfast_ready')).toBe(1);
    expect(await value('holdfast_target_state{upstream="a",model="",state="closed"}')).toBe(0.5);
    expect(await value('holdfast_config_last_reload_successful')).toBe(0);
    expect(await value('holdfast_config_reloads_total{outcome="applied"}')).toBe(1);
    expect(await value('process_start_time_seconds')).toBeCloseTo(Date.now() / 1000 - process.uptime(), -1);
  });

  it('do not decrease when a worker ends, and forget what it was doing', async () => {
    const { shared, value } = share();
    for (const worker of [1, 2, 3]) {
      const metrics = new Metrics();
      metrics.runs.inc(ENDED, 5);
      metrics.activeRuns.set(7);
      metrics.recoveryGap.observe(metrics.ofRun(RUN, 'a', 1));
      shared.heard(worker, await partOf(metrics));
      if (worker < 3) shared.departed(worker);
    }
    expect(await value(RUNS)).toBe(15);
    expect(await value('holdfast_recovery_gap_seconds_count{upstream="a"}')).toBe(3);
    expect(await value('holdfast_runs_active')).toBe(7);
  });

  it('do not decrease when fractions are added in another order', async () => {
    const fraction = fc.double({ min: 1e-6, max: 10, noNaN: true });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fraction, { minLength: 3, maxLength: 6 }),
        fc.nat(),
        async (seconds, seed) => {
          const { shared, value } = share();
          const parts = await Promise.all(
            seconds.map((each) => {
              const metrics = new Metrics();
              metrics.recoveryGap.observe(metrics.ofRun(RUN, 'a', each));
              return partOf(metrics);
            }),
          );
          for (const [worker, part] of parts.entries()) shared.heard(worker, part);
          const sum = async () => Number(await value('holdfast_recovery_gap_seconds_sum{upstream="a"}'));
          let before = await sum();
          for (const [turn] of parts.entries()) {
            shared.departed((seed + turn) % parts.length);
            const now = await sum();
            expect(now).toBeGreaterThanOrEqual(before);
            before = now;
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  it('keep the latest run of each bucket', async () => {
    const { shared, read } = share();
    const metrics = new Metrics();
    metrics.recoveryGap.observe(metrics.ofRun(RUN, 'a', 1));
    shared.heard(1, await partOf(metrics));
    expect(await read(OPEN_METRICS)).toContain(`run_id="${RUN}"`);
    expect(await read(OPEN_METRICS)).toMatch(/# EOF\n$/);
  });
});
