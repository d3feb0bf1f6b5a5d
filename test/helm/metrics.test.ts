import { describe, expect, it } from 'vitest';
import { Chart } from './chart.ts';
import { only, specOf } from './resource.ts';

const chart = Chart.use();

const OPEN = { networkPolicy: { enabled: false } };

describe.each([
  ['podMonitor', 'PodMonitor', 'podMetricsEndpoints'],
  ['serviceMonitor', 'ServiceMonitor', 'endpoints'],
])('%s', (name, kind, field) => {
  const endpoints = async (settings: object) => {
    const metrics = { [name]: { enabled: true, ...settings } };
    return only(await chart.renderWith({ ...OPEN, metrics }), kind).spec?.[field];
  };

  it('has nothing besides where and how often to scrape unless it is given', async () => {
    expect(await endpoints({})).toEqual([{ port: 'admin', path: '/metrics', interval: '15s' }]);
  });

  it('has TLS and the changes to labels that are given', async () => {
    const settings = {
      scheme: 'https',
      tlsConfig: { ca: { configMap: { name: 'authority', key: 'ca.crt' } }, serverName: 'holdfast' },
      relabelings: [{ sourceLabels: ['__meta_kubernetes_pod_node_name'], targetLabel: 'node' }],
      metricRelabelings: [{ action: 'drop', sourceLabels: ['__name__'], regex: 'nodejs_.*' }],
    };
    expect(await endpoints(settings)).toEqual([
      { port: 'admin', path: '/metrics', interval: '15s', ...settings },
    ]);
  });
});

describe('the alerts', () => {
  const runbooks = async (prometheusRule: object) => {
    const metrics = { prometheusRule: { enabled: true, ...prometheusRule } };
    const { groups } = specOf<{ groups: { rules: Alert[] }[] }>(
      only(await chart.renderWith({ metrics }), 'PrometheusRule'),
    );
    const alerts = groups.flatMap(({ rules }) => rules).filter(({ alert }) => alert !== undefined);
    return new Map(alerts.map(({ alert = '', annotations }) => [alert, annotations?.runbook_url]));
  };

  it('each have an absolute address of their section where the address of the page is given', async () => {
    const runbookUrl = 'https://docs.example.com/holdfast/troubleshooting';
    const found = await runbooks({ runbookUrl });
    expect(found.size).toBeGreaterThan(10);
    for (const [alert, runbook] of found) expect(runbook).toBe(`${runbookUrl}#${alert.toLowerCase()}`);
  });

  it('name the path in the repository otherwise', async () => {
    expect((await runbooks({})).get('HoldfastStoreSlow')).toBe('docs/troubleshooting.md#holdfaststoreslow');
  });
});

interface Alert {
  readonly alert?: string;
  readonly annotations?: { readonly runbook_url: string };
}
