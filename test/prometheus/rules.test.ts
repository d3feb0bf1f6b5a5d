import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it, test } from 'vitest';
import { completeConfiguration } from '../../src/config/load.ts';
import { systemTime } from '../../src/lib/time.ts';
import { GenAiMetrics } from '../../src/metrics/gen-ai/gen-ai-metrics.ts';
import { Metrics } from '../../src/metrics/metrics.ts';
import { needs } from '../needs.ts';
import { prometheusBinaries, promtool } from './binaries.ts';
import { DASHBOARD, dashboardQueries, RULES, RULES_FILE } from './chart-files.ts';

const RUNBOOK = readFileSync(new URL('../../docs/troubleshooting.md', import.meta.url), 'utf8');
const UNIT_TESTS = fileURLToPath(new URL('alerts.yaml', import.meta.url));

const binaries = await prometheusBinaries();
const tool = 'missing' in binaries ? '' : binaries.promtool;

/** Every metric of a replica, as named in queries. */
const ALL = new Metrics();
ALL.observeProcess();
const KNOWN = await (async () => {
  const configuration = completeConfiguration({
    upstreams: { main: { base_url: 'https://llm.example.com/v1' } },
  });
  new GenAiMetrics(ALL.families, configuration, systemTime);
  ALL.begin({ upstream: ['main'], store: ['redis'] });
  const all = await ALL.registry.getMetricsAsJSON();
  return new Set(
    all.flatMap(({ name, type }) =>
      (type as unknown) === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  );
})();
const RECORDED = new Set(RULES.flatMap(({ record }) => record ?? []));

/** The metric names in an expression, without labels, values and keywords. */
const metricsIn = (expression: string): readonly string[] =>
  expression
    .match(/\b(?:holdfast|gen_ai|process|nodejs)[a-z0-9_]*(?::[a-z0-9_]+)*(?=[{[\s)]|$)/g)
    ?.filter((name) => !/^gen_ai_(?:provider_name|request_model|token_type)$/.test(name)) ?? [];

test('the rules are sound', needs(binaries), async () => {
  expect((await promtool(tool, 'check', 'rules', RULES_FILE)).stdout).toContain(
    `${RULES.length} rules found`,
  );
});

test('alerts fire when they should, and only then', needs(binaries), async () => {
  expect((await promtool(tool, 'test', 'rules', UNIT_TESTS)).stdout).toContain('SUCCESS');
});

test('what a replica exposes is as Prometheus would have it', needs(binaries), async () => {
  const { body } = await ALL.exposition(undefined);
  // Skip the metrics of Node.js, which follow other conventions.
  const ours = body.split('\n\n').filter((family) => /^# HELP (holdfast|gen_ai)_/.test(family));
  const checking = promtool(tool, 'check', 'metrics');
  checking.child.stdin?.end(`${ours.join('\n')}\n`);
  expect((await checking).stderr).toBe('');
});

it.each(RULES.map((rule) => [rule.alert ?? rule.record ?? '', rule] as const))('%s', (name, rule) => {
  const names = metricsIn(rule.expr);
  expect(names).not.toEqual([]);
  for (const metric of names) expect(KNOWN.has(metric) || RECORDED.has(metric), metric).toBe(true);
  if (rule.alert === undefined) return;
  expect(rule.labels?.severity).toMatch(/^(critical|warning)$/);
  const { summary = '', description = '', runbook_url = '' } = rule.annotations ?? {};
  expect(summary).toMatch(/^[A-Z].*\.$/);
  expect(description).toMatch(/^\S.*\.$/s);
  expect(runbook_url).toBe(`docs/troubleshooting.md#${name.toLowerCase()}`);
  expect(RUNBOOK).toContain(`\n### ${name}\n`);
});

it('the dashboard asks for nothing that there is not', () => {
  for (const { where, expression } of dashboardQueries('1m', '5m')) {
    const names = metricsIn(expression);
    expect(names, where).not.toEqual([]);
    for (const metric of names) expect(KNOWN.has(metric), `${where}: ${metric}`).toBe(true);
  }
});

it('every metric of Holdfast is on the dashboard', () => {
  const shown = new Set(
    dashboardQueries('1m', '5m').flatMap(({ expression }) =>
      metricsIn(expression).map((name) => name.replace(/_(bucket|count|sum)$/, '')),
    ),
  );
  expect(new Metrics().families.all.map(({ name }) => name).filter((name) => !shown.has(name))).toEqual([]);
});

it('panels have names of their own, a unit and an explanation, and do not lie on each other', () => {
  const { panels } = DASHBOARD;
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const drawn = panels.filter(({ type }) => type !== 'row');
  expect(new Set(drawn.map(({ title }) => title)).size).toBe(drawn.length);
  for (const { title, description, datasource, fieldConfig, targets } of drawn) {
    expect(description, title).toMatch(/\.$/);
    expect(datasource, title).toEqual({ type: 'prometheus', uid: `\${datasource}` });
    expect(fieldConfig?.defaults.unit, title).toBeTruthy();
    expect(targets, title).not.toEqual([]);
  }
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBeLessThanOrEqual(24);
});
