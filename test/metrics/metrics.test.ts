import { expect, it } from 'vitest';
import { Metrics } from '../../src/metrics/metrics.ts';

const CONFIGURED = { upstream: ['main', 'spare'], store: ['redis'] };
const OPEN_METRICS =
  'application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1';
const RUN = 'run_kelp';

/** Holdfast's series and their values, without those of Node.js. */
const seriesIn = (text: string): ReadonlyMap<string, string> =>
  new Map(
    text
      .split('\n')
      .filter((line) => line.startsWith('holdfast_'))
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), line.slice(line.lastIndexOf(' ') + 1)]),
  );

const seriesOf = async (metrics: Metrics) => seriesIn((await metrics.exposition(undefined)).body);

it('has exactly the series that dashboards and alerts rely on', async () => {
  const metrics = await new Metrics().registry.getMetricsAsJSON();
  const names = metrics.map(({ name }) => name).filter((name) => name.startsWith('holdfast_'));
  expect(names.toSorted((left, right) => left.localeCompare(right))).toEqual([
    'holdfast_attempts_total',
    'holdfast_build_info',
    'holdfast_checkpoint_append_seconds',
    'holdfast_checkpoint_errors_total',
    'holdfast_client_disconnects_total',
    'holdfast_compressions_total',
    'holdfast_config_last_reload_success_timestamp_seconds',
    'holdfast_config_last_reload_successful',
    'holdfast_config_reloads_total',
    'holdfast_hedges_total',
    'holdfast_interruptions_total',
    'holdfast_key_renewals_total',
    'holdfast_malformed_events_total',
    'holdfast_memory_held_bytes',
    'holdfast_memory_limit_bytes',
    'holdfast_memory_refusals_total',
    'holdfast_overhead_seconds',
    'holdfast_ready',
    'holdfast_recoveries_total',
    'holdfast_recovery_gap_seconds',
    'holdfast_runs_active',
    'holdfast_runs_total',
    'holdfast_salvaged_runs_total',
    'holdfast_seams_total',
    'holdfast_steps_total',
    'holdfast_store_up',
    'holdfast_takeovers_total',
    'holdfast_target_state',
    'holdfast_target_transitions_total',
    'holdfast_tasks_total',
    'holdfast_time_to_first_token_seconds',
    'holdfast_tokens_total',
    'holdfast_tool_claims_total',
    'holdfast_webhooks_total',
  ]);
});

it('what can be counted is there before it is, so that the first of its kind is an increase', async () => {
  const metrics = new Metrics();
  metrics.targets = () => [{ upstream: 'main', model: 'kelp', state: 'closed' }];
  metrics.begin(CONFIGURED);
  const before = await seriesOf(metrics);
  for (const series of [
    'holdfast_runs_total{wire="messages",outcome="failed"}',
    'holdfast_interruptions_total{cause="idle_stall",phase="text",upstream="spare"}',
    'holdfast_recoveries_total{plan="R2",mode="none",outcome="succeeded"}',
    'holdfast_checkpoint_errors_total{store="redis"}',
    'holdfast_checkpoint_append_seconds_count{store="redis"}',
    'holdfast_recovery_gap_seconds_count{upstream="spare"}',
    'holdfast_time_to_first_token_seconds_count{upstream="main"}',
    'holdfast_target_transitions_total{upstream="main",model="kelp",state="open"}',
    'holdfast_salvaged_runs_total{status="recovered_from_partial"}',
    'holdfast_takeovers_total{outcome="taken"}',
    'holdfast_tokens_total{kind="repaid"}',
  ])
    expect(before.get(series), series).toBe('0');
  metrics.runs.inc({ wire: 'messages', outcome: 'failed' });
  metrics.interruptions.inc({ cause: 'idle_stall', phase: 'text', upstream: 'spare' });
  metrics.targetTransitions.inc({ upstream: 'main', model: 'kelp', state: 'open' });
  metrics.checkpointAppend.observe({ store: 'redis' }, 0.1);
  expect([...(await seriesOf(metrics)).keys()]).toEqual([...before.keys()]);
});

it('combinations that make no sense have no series', async () => {
  const metrics = new Metrics();
  metrics.begin(CONFIGURED);
  const series = [...(await seriesOf(metrics)).keys()];
  expect(series.filter((name) => name.includes('plan="R4"'))).toEqual([
    'holdfast_recoveries_total{plan="R4",mode="restart",outcome="succeeded"}',
    'holdfast_recoveries_total{plan="R4",mode="restart",outcome="failed"}',
  ]);
  expect(series.some((name) => name.includes('store="file"'))).toBe(false);
});

it('says whether the replica is ready and whether its store works, as things are', async () => {
  const metrics = new Metrics();
  expect((await seriesOf(metrics)).get('holdfast_ready')).toBe('1');
  metrics.ready = () => false;
  metrics.storeWorks = false;
  const later = await seriesOf(metrics);
  expect(later.get('holdfast_ready')).toBe('0');
  expect(later.get('holdfast_store_up')).toBe('0');
});

it('a scraper that prefers OpenMetrics gets the run behind a value, and others do not', async () => {
  const metrics = new Metrics();
  metrics.begin(CONFIGURED);
  metrics.recoveryGap.observe(metrics.ofRun(RUN, 'main', 0.3));
  metrics.timeToFirstToken.observe(metrics.ofRun(RUN, 'main', 1000));
  metrics.runs.inc({ wire: 'responses', outcome: 'recovered' });
  const before = await metrics.exposition('text/plain');
  const open = await metrics.exposition(OPEN_METRICS);
  expect(open.type).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
  expect(open.body).toMatch(
    /^holdfast_recovery_gap_seconds_bucket\{le="0\.5",upstream="main"\} 1 # \{run_id="run_kelp"\} 0\.3 [\d.]+$/m,
  );
  expect(open.body).toMatch(
    /^holdfast_time_to_first_token_seconds_bucket\{le="\+Inf",upstream="main"\} 1 # \{run_id="run_kelp"\} 1000 [\d.]+$/m,
  );
  expect(open.body).toContain('# TYPE holdfast_runs counter\n');
  expect(open.body).toContain('\nholdfast_runs_total{wire="responses",outcome="recovered"} 1\n');
  expect(open.body).toMatch(/\n# EOF\n$/);

  const after = await metrics.exposition(undefined);
  expect(after.type).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(seriesIn(after.body)).toEqual(seriesIn(before.body));
  expect(after.body).toContain('# TYPE holdfast_runs_total counter\n');
  expect(after.body).not.toContain(RUN);
});

it.each([
  [undefined, 'text/plain'],
  ['*/*', 'text/plain'],
  ['text/plain;version=0.0.4, application/openmetrics-text;q=0.3', 'text/plain'],
  ['application/openmetrics-text;version=0.0.1', 'text/plain'],
  ['application/openmetrics-text;q=0', 'text/plain'],
  ['application/openmetrics-text', 'application/openmetrics-text'],
  ['text/plain;q=0.4, Application/OpenMetrics-Text; version=1.0.0; q=0.5', 'application/openmetrics-text'],
  [OPEN_METRICS, 'application/openmetrics-text'],
])('accept: %s', async (accept, type) => {
  expect((await new Metrics().exposition(accept)).type.split(';')[0]).toBe(type);
});

it('names no run where that is not wanted', async () => {
  const metrics = new Metrics();
  metrics.exemplars = false;
  metrics.recoveryGap.observe(metrics.ofRun(RUN, 'main', 0.3));
  const { body } = await metrics.exposition(OPEN_METRICS);
  expect(body).toContain('holdfast_recovery_gap_seconds_count{upstream="main"} 1');
  expect(body).not.toContain(RUN);
});

it('buckets reach as far as a model that reasons is waited for', () => {
  const { families } = new Metrics();
  const last = (name: string) => families.all.find((family) => family.name === name)?.buckets?.at(-1);
  expect(last('holdfast_time_to_first_token_seconds')).toBeGreaterThanOrEqual(600);
  expect(last('holdfast_recovery_gap_seconds')).toBeGreaterThanOrEqual(600);
});

it('two processes in one, as in tests, do not share series', async () => {
  const [one, other] = [new Metrics(), new Metrics()];
  one.activeRuns.inc();
  expect(await one.registry.metrics()).toContain('holdfast_runs_active 1');
  expect(await other.registry.metrics()).toContain('holdfast_runs_active 0');
});

it('to begin again, with upstreams that were added, leaves what was counted as it is', async () => {
  const metrics = new Metrics();
  metrics.begin({ upstream: ['one'], store: ['memory'] });
  metrics.attempts.inc({ upstream: 'one', outcome: 'complete' });
  metrics.checkpointAppend.observe({ store: 'memory' }, 1);
  metrics.begin({ upstream: ['one', 'two'], store: ['memory'] });
  const { body } = await metrics.exposition(undefined);
  expect(body).toContain('holdfast_attempts_total{upstream="one",outcome="complete"} 1\n');
  expect(body).toContain('holdfast_attempts_total{upstream="two",outcome="complete"} 0\n');
  expect(body).toContain('holdfast_checkpoint_append_seconds_count{store="memory"} 1\n');
});

it('has no state of a target that there is no more', async () => {
  const metrics = new Metrics();
  const target = (upstream: string) => ({ upstream, model: '', state: 'open' as const });
  metrics.targets = () => [target('one'), target('two')];
  await metrics.exposition(undefined);
  metrics.targets = () => [target('two')];
  const { body } = await metrics.exposition(undefined);
  expect(body).toContain('holdfast_target_state{upstream="two",model="",state="open"} 1\n');
  expect(body).not.toContain('holdfast_target_state{upstream="one"');
});

it('a label that is not declared is refused', () => {
  const { runs } = new Metrics();
  expect(() => runs.inc({ wire: 'chat_completions', model: 'gpt-4o' } as never)).toThrow('model');
});
