import { describe, expect, it } from 'vitest';
import { Chart, type Values, variable } from './chart.ts';

const chart = Chart.use();

describe('values that are unknown, or of a wrong kind, are refused', () => {
  const WRONG: Record<string, [Values, RegExp]> = {
    'an unknown value': [{ replicas: 3 }, /additional properties 'replicas' not allowed/i],
    'an unknown value in a section': [{ service: { prot: 80 } }, /additional properties 'prot' not allowed/i],
    'an unknown value in a list': [
      { ingress: { hosts: [{ host: 'a', pahts: [] }] } },
      /additional properties 'pahts' not allowed/i,
    ],
    'an unknown key of the configuration': [
      { config: { recovery: { max_atempts: 3 } } },
      /additional properties 'max_atempts' not allowed/i,
    ],
    'an unknown key of a provider': [
      { config: { upstreams: { openai: { url: 'https://a' } } } },
      /additional properties 'url' not allowed/i,
    ],
    'an unknown mode': [{ mode: 'ambassador' }, /\/mode.*(one of|gateway)/is],
    'an unknown store': [{ store: { type: 'postgres' } }, /\/store\/type/],
    'a number as a text': [{ replicaCount: 'two' }, /\/replicaCount.*integer/is],
    'a port below those that every user may open': [{ ports: { api: 80 } }, /\/ports\/api.*minimum/is],
    'a secret that is too short': [{ secret: { value: 'short' } }, /\/secret\/value/],
    'a tag that is none': [{ image: { tag: 'a tag' } }, /\/image\/tag/],
    'a registry with a scheme': [
      { image: { registry: 'https://registry.example.com' } },
      /\/image\/registry/,
    ],
    'a registry that ends in a slash': [
      { global: { imageRegistry: 'registry.example.com/' } },
      /\/global\/imageRegistry/,
    ],
    'a strategy that Deployments do not have': [
      { strategy: { type: 'OnDelete' } },
      /\/strategy\/type.*RollingUpdate/s,
    ],
    'a range that is an address': [
      { service: { type: 'LoadBalancer', loadBalancerSourceRanges: ['203.0.113.1'] } },
      /\/service\/loadBalancerSourceRanges\/0/,
    ],
    'a family of addresses given twice': [
      { service: { ipFamilies: ['IPv4', 'IPv4'] } },
      /\/service\/ipFamilies.*equal/s,
    ],
    'a distribution that Kubernetes does not have': [
      { service: { trafficDistribution: 'PreferNear' } },
      /\/service\/trafficDistribution.*PreferClose/s,
    ],
    'half of a fallback': [
      { autoscaling: { keda: { fallback: { replicas: 3 } } } },
      /\/autoscaling\/keda\/fallback.*failureThreshold/s,
    ],
    'a Prometheus without a scheme': [
      { autoscaling: { keda: { serverAddress: 'prometheus:9090' } } },
      /\/autoscaling\/keda\/serverAddress/,
    ],
    'a policy for names that Kubernetes does not have': [
      { dnsPolicy: 'Cluster' },
      /\/dnsPolicy.*ClusterFirst/s,
    ],
    'a container without an image': [
      { extraContainers: [{ name: 'agent' }] },
      /\/extraContainers\/0.*'image'/s,
    ],
    'a manifest of no kind': [{ extraObjects: [{ apiVersion: 'v1' }] }, /\/extraObjects\/0.*'kind'/s],
    'a runbook with an anchor': [
      { metrics: { prometheusRule: { runbookUrl: 'https://docs.example.com/troubleshooting#a' } } },
      /\/metrics\/prometheusRule\/runbookUrl/,
    ],
    'a digest that is none': [{ image: { digest: 'sha256:beef' } }, /\/image\/digest/],
    'a password that would break a URL': [
      { valkey: { auth: { password: 'p@ss' } } },
      /\/valkey\/auth\/password/,
    ],
    'a URL that is not of Redis': [{ store: { redis: { url: 'http://redis' } } }, /\/store\/redis\/url/],
    'a probe over TLS': [{ probes: { liveness: { httpGet: { scheme: 'HTTPS' } } } }, /\/probes\/liveness/],
  };

  it.each(Object.entries(WRONG))('%s', async (_, [values, message]) => {
    expect(await chart.refusal(values)).toMatch(message);
  });
});

describe('values that cannot be left out are refused when they are null', () => {
  it.each(['store', 'service', 'image', 'probes', 'config', 'networkPolicy', 'resources', 'extraEnv'])(
    '%s',
    async (name) => {
      expect(await chart.refusal({ [name]: null })).toMatch(new RegExp(`missing propert.* '${name}'`));
    },
  );

  it('providers', async () => {
    expect(await chart.refusal({ config: { upstreams: null } })).toMatch(/missing propert.* 'upstreams'/);
  });
});

describe('values of the configuration', () => {
  it('may refer to variables where a number or a truth belongs', async () => {
    const config = {
      limits: { connections: variable('CONNECTIONS:-500') },
      resume: { notices: variable('NOTICES:-true') },
    };
    expect(await chart.refusal({ config })).toBe('');
  });
});
