import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ApiServer } from '../kubernetes/api-server.ts';
import { apiServerBinary, BUILD_LIMIT_MS, etcdBinary } from '../kubernetes/binaries.ts';
import { Chart } from './chart.ts';
import { type Container, only, type PodSpec, type Resource } from './resource.ts';

/** The time from storing a policy until the server enforces it. */
const OBEYED_LIMIT_MS = 60_000;
const TEST_LIMIT_MS = 120_000;
const POLL_MS = 100;
const NAMESPACE = 'llm';
const VALUES = { mode: 'sidecar', sidecar: { injection: { enabled: true } } };

const chart = Chart.use();
let server: ApiServer | undefined;
let missing: string | undefined;

beforeAll(async () => {
  const [etcd, apiServer] = [await etcdBinary(), await apiServerBinary()];
  missing = [etcd, apiServer].find((part) => 'missing' in part)?.missing;
  if ('missing' in etcd || 'missing' in apiServer) return;
  server = await ApiServer.start({ etcd: etcd.path, apiServer: apiServer.path });
  await apply('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
  await apply('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'elsewhere' } });
}, BUILD_LIMIT_MS);

beforeEach(({ skip }) => skip(missing !== undefined, missing));

afterAll(() => server?.stop());

/** Applies the resource; rejects if the server doesn't accept it unchanged. */
async function apply(path: string, resource: Resource, parameters = {}): Promise<Resource> {
  if (!server) throw new Error('there is no server');
  const query = { fieldValidation: 'Strict', ...parameters };
  const { status, warnings, body } = await server.apply(
    `${path}/${resource.metadata.name}`,
    JSON.stringify(resource),
    query,
  );
  expect({ status, warnings, body }).toEqual({ status: 201, warnings: [], body: expect.anything() });
  return body as Resource;
}

/** The pod that the server would store. */
async function admitted(pod: object, namespace = NAMESPACE, labels = {}): Promise<PodSpec> {
  const metadata = { name: 'agent', labels: { 'holdfast-inject': 'true', ...labels } };
  const resource = { apiVersion: 'v1', kind: 'Pod', metadata, spec: pod };
  const { spec } = await apply(`/api/v1/namespaces/${namespace}/pods`, resource as unknown as Resource, {
    dryRun: 'All',
  });
  return spec as unknown as PodSpec;
}

async function injected(pod: object): Promise<PodSpec> {
  const signal = AbortSignal.timeout(OBEYED_LIMIT_MS);
  for (; ; await sleep(POLL_MS, undefined, { signal })) {
    const spec = await admitted(pod);
    if (spec.initContainers?.some(({ name }) => name === 'holdfast')) return spec;
  }
}

describe('the policy that injects the sidecar', { timeout: TEST_LIMIT_MS }, () => {
  let expected: Container;

  beforeAll(async () => {
    if (!server) return;
    const resources = await chart.renderWith(VALUES);
    const admission = '/apis/admissionregistration.k8s.io/v1';
    await apply(`${admission}/mutatingadmissionpolicies`, only(resources, 'MutatingAdmissionPolicy'));
    await apply(
      `${admission}/mutatingadmissionpolicybindings`,
      only(resources, 'MutatingAdmissionPolicyBinding'),
    );
    const application = { enabled: true, containers: [{ name: 'agent', image: 'agent' }] };
    const deployed = await chart.renderWith({ mode: 'sidecar', sidecar: { application } });
    const { template } = only(deployed, 'Deployment').spec as { template: { spec: PodSpec } };
    expected = template.spec.initContainers?.[0] as Container;
  }, TEST_LIMIT_MS);

  it('puts the same container into a pod as the chart does, with its volumes', async () => {
    const spec = await injected({ containers: [{ name: 'agent', image: 'agent' }] });
    // The server adds its defaults.
    expect(spec.initContainers).toHaveLength(1);
    expect(spec.initContainers?.[0]).toMatchObject(expected);
    expect(spec.volumes).toMatchObject([
      { name: 'holdfast-config', configMap: { name: 'release-holdfast' } },
      { name: 'holdfast-data', emptyDir: { sizeLimit: '1Gi' } },
    ]);
  });

  it('puts it before other init containers, and gives its address to all containers that have none', async () => {
    const own = { name: 'OPENAI_BASE_URL', value: 'http://elsewhere/v1' };
    const spec = await injected({
      initContainers: [{ name: 'first', image: 'first' }],
      containers: [
        { name: 'agent', image: 'agent', env: [own] },
        { name: 'other', image: 'other' },
      ],
      volumes: [{ name: 'own', emptyDir: {} }],
    });
    expect(spec.initContainers?.map(({ name }) => name)).toEqual(['holdfast', 'first']);
    expect(spec.volumes).toHaveLength(3);
    const anthropic = { name: 'ANTHROPIC_BASE_URL', value: 'http://127.0.0.1:8080' };
    expect(spec.containers.map(({ env }) => env)).toEqual([
      expect.arrayContaining([own, anthropic]),
      [{ name: 'OPENAI_BASE_URL', value: 'http://127.0.0.1:8080/v1' }, anthropic],
    ]);
  });

  it('leaves pods alone that have one, that do not ask for one, and that are elsewhere', async () => {
    const containers = [{ name: 'agent', image: 'agent' }];
    await injected({ containers });
    const has = { initContainers: [{ name: 'holdfast', image: 'own', restartPolicy: 'Always' }], containers };
    expect((await admitted(has)).initContainers).toMatchObject([{ image: 'own' }]);
    expect(await admitted({ containers }, NAMESPACE, { 'holdfast-inject': 'no' })).not.toHaveProperty(
      'initContainers',
    );
    expect(await admitted({ containers }, 'elsewhere')).not.toHaveProperty('initContainers');
  });
});
