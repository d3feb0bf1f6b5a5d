import { describe, expect, it } from 'vitest';
import { Chart, MINIMAL } from './chart.ts';
import { only, podOf, proxyOf } from './resource.ts';

const chart = Chart.use();

const PUBLISHED = {
  registry: 'registry.example.com',
  image: 'your-org/holdfast',
  'runbook-url': 'https://docs.example.com/troubleshooting',
};

describe('the chart that a release publishes', () => {
  it('names the image of the release, and where its alerts are explained', async () => {
    const resources = await chart.renderPackage(PUBLISHED, {
      ...MINIMAL,
      metrics: { prometheusRule: { enabled: true } },
    });
    expect(proxyOf(podOf(resources)).image).toMatch(/^registry\.example\.com\/your-org\/holdfast:\d/);
    expect(JSON.stringify(only(resources, 'PrometheusRule').spec)).toContain(
      '"runbook_url":"https://docs.example.com/troubleshooting#holdfaststoreslow"',
    );
  });

  it('is otherwise the one that is tested', async () => {
    const [published, tested] = await Promise.all([
      chart.renderPackage(PUBLISHED, MINIMAL),
      chart.renderWith({ image: { registry: PUBLISHED.registry, repository: PUBLISHED.image } }),
    ]);
    expect(published).toEqual(tested);
  });

  it('is not packaged without saying where its image is', async () => {
    await expect(chart.renderPackage({ ...PUBLISHED, image: '' }, MINIMAL)).rejects.toThrow('--image NAME');
  });
});
