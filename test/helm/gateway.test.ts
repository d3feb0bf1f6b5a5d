import { describe, expect, it } from 'vitest';
import { Chart, EXAMPLES } from './chart.ts';
import {
  kindsOf,
  LEAST_RIGHTS,
  only,
  podOf,
  proxyOf,
  type Resource,
  selectorOf,
  specOf,
} from './resource.ts';

const chart = Chart.use();

const REDIS = {
  secret: { existingSecret: 'holdfast' },
  store: { type: 'redis', redis: { existingSecret: 'holdfast' } },
};

describe('a gateway', () => {
  it('has no kinds besides those of Kubernetes unless they are asked for', async () => {
    expect(kindsOf(await chart.renderWith({}))).toEqual([
      'ConfigMap',
      'Deployment',
      'NetworkPolicy',
      'PodDisruptionBudget',
      'Service',
      'ServiceAccount',
    ]);
  });

  it('may do nothing that it need not', async () => {
    const { spec } = podOf(await chart.renderWith({}));
    expect(spec).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
    });
    expect(proxyOf(podOf(await chart.renderWith({}))).securityContext).toEqual(LEAST_RIGHTS);
  });

  it('has an account without a token', async () => {
    expect(only(await chart.renderWith({}), 'ServiceAccount')).toMatchObject({
      automountServiceAccountToken: false,
    });
  });

  it.each(EXAMPLES)(
    'has no command, no probe by command and no hook by command with examples/%s',
    async (example) => {
      const text = JSON.stringify((await chart.render(example)).filter(isProxy));
      expect(text).not.toMatch(/"(exec|command)":/);
    },
  );

  it('has a root file system that nothing is written to: journals have a volume', async () => {
    const resources = await chart.renderWith({});
    expect(proxyOf(podOf(resources)).volumeMounts).toContainEqual({
      name: 'holdfast-data',
      mountPath: '/data',
    });
    expect(podOf(resources).spec.volumes).toContainEqual({
      name: 'holdfast-data',
      emptyDir: { sizeLimit: '1Gi' },
    });
  });

  it('is replaced before the next one starts where both would need the volume', async () => {
    const persistence = { enabled: true };
    const resources = await chart.renderWith({ store: { file: { persistence } } });
    expect(only(resources, 'Deployment').spec?.strategy).toEqual({ type: 'Recreate' });
    expect(podOf(resources).spec.volumes).toContainEqual({
      name: 'holdfast-data',
      persistentVolumeClaim: { claimName: 'release-holdfast-data' },
    });
    expect(only(resources, 'PersistentVolumeClaim').metadata.name).toBe('release-holdfast-data');
  });

  it('leaves the number of replicas to the autoscaler', async () => {
    const resources = await chart.renderWith({ ...REDIS, autoscaling: { enabled: true } });
    expect(only(resources, 'Deployment').spec).not.toHaveProperty('replicas');
    expect(only(resources, 'HorizontalPodAutoscaler').spec).toMatchObject({
      metrics: [
        {
          type: 'Pods',
          pods: {
            metric: { name: 'holdfast_runs_active' },
            target: { type: 'AverageValue', averageValue: '200' },
          },
        },
        {
          type: 'Resource',
          resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 75 } },
        },
      ],
      behavior: {
        scaleDown: {
          stabilizationWindowSeconds: 600,
          policies: [{ type: 'Pods', value: 1, periodSeconds: 120 }],
        },
      },
    });
  });

  it('sleeps before it stops, by the kubelet, or not at all', async () => {
    const [asleep, awake] = await Promise.all([
      chart.renderWith({ preStop: { sleepSeconds: 7 } }),
      chart.renderWith({ preStop: { sleepSeconds: 0 } }),
    ]);
    expect(proxyOf(podOf(asleep)).lifecycle).toEqual({ preStop: { sleep: { seconds: 7 } } });
    expect(proxyOf(podOf(awake))).not.toHaveProperty('lifecycle');
  });

  it('has new pods for a new configuration or a new secret, and for nothing else', async () => {
    const annotations = async (values: object) =>
      podOf(await chart.renderWith({ ...values })).metadata.annotations;
    const [before, same, configuration, secret] = await Promise.all([
      annotations({ secret: { value: '0123456789abcdef' } }),
      annotations({ secret: { value: '0123456789abcdef' }, replicaCount: 0 }),
      annotations({ secret: { value: '0123456789abcdef' }, config: { log: { level: 'debug' } } }),
      annotations({ secret: { value: 'fedcba9876543210' } }),
    ]);
    expect(same).toEqual(before);
    expect(configuration['holdfast/checksum-config']).not.toBe(before['holdfast/checksum-config']);
    expect(configuration['holdfast/checksum-secret']).toBe(before['holdfast/checksum-secret']);
    expect(secret['holdfast/checksum-secret']).not.toBe(before['holdfast/checksum-secret']);
  });

  it('keeps its pods for a new configuration where they read it themselves, and has new ones for a new secret', async () => {
    const annotations = async (values: object) =>
      podOf(await chart.renderWith({ configReload: { enabled: true }, ...values })).metadata.annotations;
    const [before, configuration, secret] = await Promise.all([
      annotations({ secret: { value: '0123456789abcdef' } }),
      annotations({ secret: { value: '0123456789abcdef' }, config: { log: { level: 'debug' } } }),
      annotations({ secret: { value: 'fedcba9876543210' } }),
    ]);
    expect(Object.keys(before)).toEqual(['holdfast/checksum-secret']);
    expect(configuration).toEqual(before);
    expect(secret).not.toEqual(before);
    expect(await annotations({})).toBeUndefined();
  });

  it('has its configuration as a whole directory: the kubelet never updates a file that is mounted by itself', async () => {
    const resources = await chart.renderWith({ configReload: { enabled: true } });
    expect(proxyOf(podOf(resources)).volumeMounts).toContainEqual({
      name: 'holdfast-config',
      mountPath: '/etc/holdfast',
      readOnly: true,
    });
  });

  it('is replaced by the strategy that is given', async () => {
    const strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge: '50%', maxUnavailable: 1 } };
    expect(only(await chart.renderWith({ strategy }), 'Deployment').spec?.strategy).toEqual(strategy);
  });

  it('resolves names as dnsPolicy and dnsConfig say', async () => {
    const dnsConfig = { nameservers: ['10.0.0.10'], options: [{ name: 'ndots', value: '1' }] };
    const { spec } = podOf(await chart.renderWith({ dnsPolicy: 'None', dnsConfig }));
    expect(spec).toMatchObject({ dnsPolicy: 'None', dnsConfig });
    expect(Object.keys(podOf(await chart.renderWith({})).spec)).not.toContain('dnsPolicy');
  });

  it('has further containers beside its own, and before it', async () => {
    const agent = { name: 'agent', image: 'agent:1', env: [{ name: 'A', value: 'b' }] };
    const keys = { name: 'keys', image: 'keys:1', restartPolicy: 'Always' };
    const { spec } = podOf(await chart.renderWith({ extraContainers: [agent], extraInitContainers: [keys] }));
    expect(spec.initContainers).toEqual([keys]);
    expect(spec.containers.map(({ name }) => name)).toEqual(['holdfast', 'agent']);
    expect(spec.containers[1]).toEqual(agent);
  });

  it('comes with further manifests, which are templates', async () => {
    const name = '{{ include "holdfast.fullname" . }}-extra';
    const resources = await chart.renderWith({
      extraObjects: [
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { api: '{{ .Values.ports.api }}' } },
        `apiVersion: v1\nkind: Secret\nmetadata: { name: ${name} }\n`,
      ],
    });
    expect(only(resources, 'ConfigMap', 'release-holdfast-extra').data).toEqual({ api: '8080' });
    expect(only(resources, 'Secret').metadata.name).toBe('release-holdfast-extra');
  });

  it('is named by digest where there is one, else by tag, else by version', async () => {
    const image = async (image: object) => proxyOf(podOf(await chart.renderWith({ image }))).image;
    const digest = `sha256:${'0123456789abcdef'.repeat(4)}`;
    expect(await image({})).toMatch(/^holdfast:\d+\.\d+\.\d+$/);
    expect(await image({ repository: 'images/holdfast', tag: 'edge' })).toBe('images/holdfast:edge');
    expect(await image({ tag: 'edge', digest })).toBe(`holdfast@${digest}`);
    expect(await image({ registry: 'registry.example.com:5000/mirror', tag: 'edge', digest })).toBe(
      `registry.example.com:5000/mirror/holdfast@${digest}`,
    );
  });

  it('comes from the registry of all charts where there is one, as its Valkey does', async () => {
    const registry = 'registry.example.com';
    const images = async (values: object) => {
      const resources = await chart.renderWith({
        secret: { existingSecret: 'holdfast' },
        store: { type: 'valkey' },
        ...values,
      });
      return [podOf(resources), podOf(resources, 'StatefulSet')].map(({ spec }) =>
        spec.containers[0]?.image.replace(/:[^:]*$/, ''),
      );
    };
    const auth = { existingSecret: 'holdfast' };
    expect(
      await images({ image: { registry }, valkey: { auth, image: { registry: 'other.example.com' } } }),
    ).toEqual(['registry.example.com/holdfast', 'other.example.com/valkey/valkey']);
    const global = { imageRegistry: 'mirror.example.com' };
    expect(await images({ global, image: { registry }, valkey: { auth } })).toEqual([
      'mirror.example.com/holdfast',
      'mirror.example.com/valkey/valkey',
    ]);
  });
});

describe('the admin port', () => {
  const ports = (resource: Resource) =>
    specOf<{ ports: { name: string }[] }>(resource).ports.map(({ name }) => name);

  it('is on no Service unless it is asked for', async () => {
    expect(ports(only(await chart.renderWith({}), 'Service'))).toEqual(['api']);
    const exposed = await chart.renderWith({ service: { exposeAdmin: true } });
    expect(ports(only(exposed, 'Service'))).toEqual(['api', 'admin']);
  });

  it('has a Service of its own, within the cluster, for a ServiceMonitor', async () => {
    const resources = await chart.render('gateway-api.yaml');
    const metrics = only(resources, 'Service', 'release-holdfast-metrics');
    expect(metrics.spec).toMatchObject({ clusterIP: 'None' });
    expect(ports(metrics)).toEqual(['admin']);
    const selector = selectorOf(only(resources, 'ServiceMonitor'));
    expect(metrics.metadata.labels).toMatchObject(selector);
    expect(only(resources, 'Service', 'release-holdfast').metadata.labels).not.toMatchObject(selector);
  });

  it('is closed, or open to the configured peers', async () => {
    const peers = [{ namespaceSelector: {} }];
    const ingress = async (networkPolicy: object) =>
      only(await chart.renderWith({ networkPolicy }), 'NetworkPolicy').spec?.ingress;
    const api = { ports: [{ protocol: 'TCP', port: 'api' }] };
    expect(await ingress({})).toEqual([api]);
    expect(await ingress({ apiFrom: peers, adminFrom: peers })).toEqual([
      { ...api, from: peers },
      { ports: [{ protocol: 'TCP', port: 'admin' }], from: peers },
    ]);
  });
});

describe('what is between client and gateway', () => {
  const annotations = async (ingress: object) =>
    only(
      await chart.renderWith({
        config: { limits: { body_bytes: 1048576 } },
        ingress: { enabled: true, hosts: [{ host: 'llm.example.com' }], ...ingress },
      }),
      'Ingress',
    ).metadata.annotations;

  it('gathers no streams, lets them be silent, and takes requests as large as Holdfast does', async () => {
    expect(await annotations({})).toEqual({
      'nginx.ingress.kubernetes.io/proxy-buffering': 'off',
      'nginx.ingress.kubernetes.io/proxy-request-buffering': 'off',
      'nginx.ingress.kubernetes.io/proxy-http-version': '1.1',
      'nginx.ingress.kubernetes.io/proxy-read-timeout': '3600',
      'nginx.ingress.kubernetes.io/proxy-send-timeout': '3600',
      'nginx.ingress.kubernetes.io/proxy-body-size': '1048576',
      'nginx.ingress.kubernetes.io/proxy-next-upstream': 'off',
    });
    expect(await annotations({ streaming: 'nginx-inc' })).toMatchObject({
      'nginx.org/proxy-buffering': 'False',
    });
    expect(await annotations({ streaming: 'haproxy' })).toMatchObject({
      'haproxy.org/timeout-server': '3600s',
    });
    expect(await annotations({ streaming: 'none' })).toBeUndefined();
  });

  it('has the annotations that are given in place of those', async () => {
    const given = { 'nginx.ingress.kubernetes.io/proxy-read-timeout': '60' };
    expect(await annotations({ annotations: given })).toMatchObject(given);
  });

  it('leads to the paths of the API only', async () => {
    const rules = only(await chart.render('ingress-nginx.yaml'), 'Ingress').spec?.rules as {
      http: { paths: { path: string; backend: { service: { port: object } } }[] };
    }[];
    expect(rules[0]?.http.paths.map(({ path }) => path)).toEqual(['/v1', '/holdfast/v1']);
    expect(rules[0]?.http.paths.map(({ backend }) => backend.service.port)).toEqual([
      { number: 80 },
      { number: 80 },
    ]);
  });

  it('has no time limit at a Gateway', async () => {
    expect(only(await chart.render('gateway-api.yaml'), 'HTTPRoute').spec).toMatchObject({
      rules: [
        { matches: [{ path: { value: '/v1' } }], timeouts: { request: '0s', backendRequest: '0s' } },
        { matches: [{ path: { value: '/holdfast/v1' } }], timeouts: { request: '0s', backendRequest: '0s' } },
      ],
    });
  });
});

describe('the Valkey of the chart', () => {
  it('keeps what it has, evicts nothing, and is asked for by password', async () => {
    const { spec } = podOf(await chart.render('gateway-valkey.yaml'), 'StatefulSet');
    expect(spec.containers[0]?.args?.join(' ')).toContain('--appendonly yes --appendfsync everysec');
    expect(spec.containers[0]?.args?.join(' ')).toContain('--maxmemory-policy noeviction');
    expect(spec.containers[0]?.args?.slice(-2)).toEqual(['--requirepass', '$(HOLDFAST_VALKEY_PASSWORD)']);
    expect(spec.containers[0]?.env).toEqual([
      {
        name: 'HOLDFAST_VALKEY_PASSWORD',
        valueFrom: { secretKeyRef: { name: 'holdfast', key: 'VALKEY_PASSWORD' } },
      },
    ]);
  });

  it('is found by the gateway only', async () => {
    const resources = await chart.render('gateway-valkey.yaml');
    const gateway = podOf(resources).metadata.labels;
    const { ingress } = specOf<{ ingress: { from: { podSelector: { matchLabels: object } }[] }[] }>(
      only(resources, 'NetworkPolicy', 'release-holdfast-valkey'),
    );
    expect(ingress.map(({ from }) => from.map(({ podSelector }) => podSelector.matchLabels))).toEqual([
      [selectorOf(only(resources, 'Deployment'))],
    ]);
    expect(gateway).toMatchObject(selectorOf(only(resources, 'Deployment')));
    expect(podOf(resources, 'StatefulSet').metadata.labels).not.toMatchObject(
      selectorOf(only(resources, 'Deployment')),
    );
  });
});

/** Whether the workload is the proxy's own; Valkey's is a StatefulSet. */
function isProxy({ kind }: Resource): boolean {
  return kind === 'Deployment';
}
