import { expect, it } from 'vitest';
import { Metrics } from '../src/metrics.ts';

it('has exactly the series that dashboards and alerts rely on', async () => {
  const metrics = await new Metrics().registry.getMetricsAsJSON();
  const names = metrics.map(({ name }) => name).filter((name) => name.startsWith('holdfast_'));
  expect(names.toSorted((left, right) => left.localeCompare(right))).toEqual([
    'holdfast_attempts_total',
    'holdfast_checkpoint_append_seconds',
    'holdfast_checkpoint_errors_total',
    'holdfast_client_disconnects_total',
    'holdfast_compressions_total',
    'holdfast_interruptions_total',
    'holdfast_malformed_events_total',
    'holdfast_overhead_seconds',
    'holdfast_recoveries_total',
    'holdfast_recovery_gap_seconds',
    'holdfast_runs_active',
    'holdfast_runs_total',
    'holdfast_salvaged_runs_total',
    'holdfast_seams_total',
    'holdfast_takeovers_total',
    'holdfast_target_state',
    'holdfast_target_transitions_total',
    'holdfast_time_to_first_token_seconds',
    'holdfast_tokens_total',
  ]);
});

it('two processes in one, as in tests, do not share series', async () => {
  const [one, other] = [new Metrics(), new Metrics()];
  one.activeRuns.inc();
  expect(await one.registry.metrics()).toContain('holdfast_runs_active 1');
  expect(await other.registry.metrics()).toContain('holdfast_runs_active 0');
});

it('a label that is not declared is refused', () => {
  const { runs } = new Metrics();
  expect(() => runs.inc({ wire: 'chat_completions', model: 'gpt-4o' } as never)).toThrow('model');
});
