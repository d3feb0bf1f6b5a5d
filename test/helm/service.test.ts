import { expect, it } from 'vitest';
import { Chart } from './chart.ts';
import { only } from './resource.ts';

const chart = Chart.use();

it('the Service leaves to Kubernetes what is not set', async () => {
  const { spec, metadata } = only(await chart.renderWith({}), 'Service');
  expect(Object.keys(spec ?? {})).toEqual(['type', 'selector', 'ports']);
  expect(metadata.annotations).toBeUndefined();
});

it('the Service has the settings of a load balancer that are given', async () => {
  const settings = {
    type: 'LoadBalancer',
    loadBalancerClass: 'example.com/internal',
    loadBalancerSourceRanges: ['10.0.0.0/8', '2001:db8::/32'],
    allocateLoadBalancerNodePorts: false,
    externalTrafficPolicy: 'Local',
    internalTrafficPolicy: 'Local',
    trafficDistribution: 'PreferSameZone',
    ipFamilyPolicy: 'PreferDualStack',
    ipFamilies: ['IPv6', 'IPv4'],
  };
  const marks = { labels: { team: 'agents' }, annotations: { 'example.com/scheme': 'internal' } };
  const resources = await chart.renderWith({ service: { ...settings, ...marks }, bindAddress: '::' });
  const { spec, metadata } = only(resources, 'Service');
  expect(spec).toMatchObject(settings);
  expect(metadata).toMatchObject(marks);
});

it('the Service has the ports at the nodes that are given', async () => {
  const nodePorts = { api: 30080, admin: 30090 };
  const service = { type: 'NodePort', exposeAdmin: true, nodePorts };
  const resources = await chart.renderWith({ service, admin: { allowPublic: true } });
  expect(only(resources, 'Service').spec?.ports).toMatchObject([
    { name: 'api', nodePort: 30080 },
    { name: 'admin', nodePort: 30090 },
  ]);
});
