import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import { startReplicaProcess } from '../cli-process.ts';
import { freePort } from '../redis/free-port.ts';
import { Chart } from './chart.ts';
import {
  type Container,
  kindsOf,
  LEAST_RIGHTS,
  only,
  type PodSpec,
  podOf,
  proxyOf,
  specOf,
} from './resource.ts';

const chart = Chart.use();
const run = promisify(execFile);

const containerOf = (spec: PodSpec): Container => {
  const [container] = spec.containers;
  if (!container) throw new Error('the pod has no container');
  return container;
};

describe('helm test', () => {
  it('makes a pod, and for as long as that runs, a name and a permission to reach the admin port', async () => {
    const resources = await chart.renderTest();
    expect(kindsOf(resources)).toEqual(['NetworkPolicy', 'Pod', 'Service']);
    for (const { metadata } of resources) {
      // `helm test --logs` fetches the logs of each test pod by name.
      expect(metadata.name).toBe('release-holdfast-test');
      expect(metadata.annotations?.['helm.sh/hook-delete-policy']).toBe(
        'before-hook-creation,hook-succeeded',
      );
    }
    const ingress = [{ ports: [{ port: 'api' }, { port: 'admin' }], from: [{ podSelector: {} }] }];
    expect(only(resources, 'NetworkPolicy').spec).toMatchObject({ ingress });
    expect(kindsOf(await chart.renderTest({ networkPolicy: { enabled: false } }))).toEqual([
      'Pod',
      'Service',
    ]);
  });

  it('lets in its own pod, which neither the Service nor the budget of the gateway counts', async () => {
    const resources = await chart.renderTest();
    const { labels } = only(resources, 'Pod').metadata;
    const { podSelector, ingress } = specOf<{
      podSelector: { matchLabels: object };
      ingress: { from: { podSelector: { matchLabels: object } }[] }[];
    }>(only(resources, 'NetworkPolicy'));
    const gateway = podOf(await chart.renderWith({})).metadata.labels;
    expect(labels).toMatchObject(ingress[0]?.from[0]?.podSelector.matchLabels ?? { none: 'there' });
    expect(gateway).toMatchObject(podSelector.matchLabels);
    expect(labels).not.toMatchObject(podSelector.matchLabels);
  });

  it('runs the image of the gateway, and may do nothing that it need not', async () => {
    const values = {
      image: { registry: 'registry.example.com', tag: 'edge' },
      imagePullSecrets: [{ name: 'pull' }],
    };
    const spec = specOf<PodSpec>(only(await chart.renderTest(values), 'Pod'));
    const container = containerOf(spec);
    expect(container.image).toBe(proxyOf(podOf(await chart.renderWith(values))).image);
    expect(container.securityContext).toEqual(LEAST_RIGHTS);
    expect(container.command).toEqual(['/usr/local/bin/node']);
    expect(spec).toMatchObject({
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      imagePullSecrets: [{ name: 'pull' }],
      securityContext: { runAsNonRoot: true },
    });
  });

  it('is for a gateway: a sidecar is reached by its own pod only', async () => {
    expect(await chart.renderTest({ mode: 'sidecar' })).toEqual([]);
  });
});

describe('the command of the pod', () => {
  /** The arguments that the kubelet would give to Node, with addresses of a process on this machine. */
  const commandFor = async (admin: string, api: string, limit_s: number) => {
    const service = { port: 8080 };
    const { args = [] } = containerOf(specOf(only(await chart.renderTest({ service }), 'Pod')));
    expect(args.slice(-3, -1)).toEqual(['http://release-holdfast-test:9090', 'http://release-holdfast:8080']);
    return [...args.slice(0, -3), admin, api, String(limit_s)];
  };
  const result = (args: readonly string[]) =>
    run(process.execPath, args).then(
      ({ stdout }) => ({ code: 0, stdout }),
      ({ code, stdout }) => ({ code, stdout }),
    );

  it('succeeds at a replica that serves, with nothing asked of a provider', async () => {
    // Nothing listens at the provider's address.
    const provider = `http://127.0.0.1:${await freePort()}/v1`;
    const { admin, api, lines } = await startReplicaProcess(['--upstream', provider]);
    expect(await result(await commandFor(admin, api, 60))).toEqual({
      code: 0,
      stdout: `ok    ${admin}/livez\nok    ${admin}/readyz\nok    ${api}/holdfast/v1/openapi.json\n`,
    });
    expect(lines.join('\n')).not.toContain(provider.replace('/v1', '/v1/'));
  });

  it('fails at a replica that is not ready, and says what it answers', async () => {
    const words = ['--upstream', `http://127.0.0.1:${await freePort()}/v1`];
    const slow = { HOLDFAST_LIMITS_DRAIN_DELAY_MS: '60000', HOLDFAST_LIMITS_DRAIN_MS: '120000' };
    const { child, admin, api } = await startReplicaProcess(words, slow);
    // After a readiness check, a draining replica waits until load balancers can have noticed.
    expect((await fetch(`${admin}/readyz`)).status).toBe(200);
    child.kill('SIGTERM');
    await vi.waitUntil(async () => (await fetch(`${admin}/readyz`)).status === 503, { timeout: 10_000 });
    const { code, stdout } = await result(await commandFor(admin, api, 0));
    expect({ code, stdout }).toEqual({
      code: 1,
      stdout: expect.stringMatching(/^ok .*\/livez\nFAIL .*\/readyz: 503 /),
    });
  });

  it('fails where nothing listens, and says so', async () => {
    const nowhere = `http://127.0.0.1:${await freePort()}`;
    const { code, stdout } = await result(await commandFor(nowhere, nowhere, 0));
    expect({ code, stdout }).toEqual({
      code: 1,
      stdout: expect.stringMatching(/^FAIL {2}http:\/\/127\.0\.0\.1:\d+\/livez: .*ECONNREFUSED/),
    });
  });
});
