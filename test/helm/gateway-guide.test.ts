import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { completeConfiguration } from '../../src/config/load.ts';
import { Chart } from './chart.ts';
import { configurationOf, kindsOf, podOf, proxyOf } from './resource.ts';

const chart = Chart.use();

describe('the guide to the gateway', () => {
  const guide = readFileSync(fileURLToPath(new URL('../../docs/kubernetes.md', import.meta.url)), 'utf8');
  const blocks = [...guide.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, code = '']) => [
    Object.keys(parse(code)).join(', '),
    code,
  ]);

  it('says when a pod goes what the chart says', async () => {
    const resources = await chart.renderWith({});
    const { terminationGracePeriodSeconds } = podOf(resources).spec;
    const { drain_ms } = parse(configurationOf(resources)).limits;
    const { drain_delay_ms } = completeConfiguration(parse(configurationOf(resources))).limits;
    const sleep = proxyOf(podOf(resources)).lifecycle?.preStop.sleep.seconds ?? 0;
    const at = (drained_ms: number) => sleep + drained_ms / 1000;
    const moments = [0, sleep, at(drain_delay_ms), at(drain_ms), terminationGracePeriodSeconds];
    const table = guide.slice(guide.indexOf('## When a pod goes'));
    expect([...table.matchAll(/^\| (\d+) s \|/gm)].map(([, seconds]) => Number(seconds))).toEqual(moments);
    expect(table).toContain(`\`limits.drain_ms\` (${drain_ms})`);
    expect(table).toContain(`\`limits.drain_delay_ms\` (${drain_delay_ms})`);
    expect(table).toContain(`\`preStop.sleepSeconds\` (${sleep})`);
  });

  it.each(blocks)('shows values that render: %s', async (_, code = '') => {
    expect(kindsOf(await chart.renderWith(parse(code)))).toContain('Deployment');
  });
});
