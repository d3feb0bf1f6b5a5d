import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startReplicaProcess } from '../cli-process.ts';
import { freePort } from '../redis/free-port.ts';
import { ApiServer } from './api-server.ts';
import { apiServerBinary, BUILD_LIMIT_MS, etcdBinary, helmBinary } from './binaries.ts';
import { StandInKubelet } from './stand-in-kubelet.ts';

const CHART = fileURLToPath(new URL('../../helm/holdfast', import.meta.url));
const NAMESPACE = 'llm';
/** The API paths of the resources of the release test. */
const PARTS = {
  pod: `/api/v1/namespaces/${NAMESPACE}/pods/holdfast-test`,
  service: `/api/v1/namespaces/${NAMESPACE}/services/holdfast-test`,
  policy: `/apis/networking.k8s.io/v1/namespaces/${NAMESPACE}/networkpolicies/holdfast-test`,
};
/** The tests start programs, while other tests run. */
const TEST_LIMIT_MS = 120_000;

const run = promisify(execFile);

let missing: string | undefined;
let binary: string;
let server: ApiServer;
const home = mkdtempSync(join(tmpdir(), 'holdfast-helm-'));

/** Runs Helm as the server's administrator. */
async function helm(...words: string[]): Promise<{ code: number; output: string }> {
  const env = { PATH: process.env.PATH, HOME: home, KUBECONFIG: server.kubeconfig() };
  return run(binary, [...words, '--namespace', NAMESPACE], { env }).then(
    ({ stdout }) => ({ code: 0, output: stdout }),
    ({ code, stdout, stderr }) => ({ code, output: stdout + stderr }),
  );
}

beforeAll(async () => {
  const [chart, etcd, apiServer] = [await helmBinary(), await etcdBinary(), await apiServerBinary()];
  missing = [chart, etcd, apiServer].find((part) => 'missing' in part)?.missing;
  if ('missing' in chart || 'missing' in etcd || 'missing' in apiServer) return;
  binary = chart.path;
  server = await ApiServer.start({ etcd: etcd.path, apiServer: apiServer.path });
  const upstream = 'config.upstreams.openai.base_url=https://api.openai.com/v1';
  const installed = await helm('install', 'holdfast', CHART, '--create-namespace', '--set', upstream);
  if (installed.code !== 0) throw new Error(installed.output);
}, BUILD_LIMIT_MS);

beforeEach(({ skip }) => skip(missing !== undefined, missing));

afterAll(async () => {
  await server?.stop();
  rmSync(home, { recursive: true });
});

/** Whether each resource exists. */
async function parts(): Promise<Record<string, boolean>> {
  const found = Object.entries(PARTS).map(async ([name, path]) => {
    const { status } = await server.request(path);
    return [name, status === 200] as const;
  });
  return Object.fromEntries(await Promise.all(found));
}

describe('helm test of an installed release', { timeout: TEST_LIMIT_MS }, () => {
  test('succeeds with a replica that serves, and leaves nothing behind', async () => {
    const provider = `http://127.0.0.1:${await freePort()}/v1`;
    const { admin, api } = await startReplicaProcess(['--upstream', provider]);
    const kubelet = new StandInKubelet(server, NAMESPACE, { admin, api });
    const [{ code, output }, printed] = await Promise.all([
      helm('test', 'holdfast', '--timeout', '90s'),
      kubelet.runOnce('holdfast-test'),
    ]);
    expect(printed).toBe(
      `ok    ${admin}/livez\nok    ${admin}/readyz\nok    ${api}/holdfast/v1/openapi.json\n`,
    );
    expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(/Phase:\s+Succeeded/) });
    expect(await parts()).toEqual({ pod: false, service: false, policy: false });
  });

  test('fails where the replica answers something else, and leaves the pod for its logs', async () => {
    const provider = `http://127.0.0.1:${await freePort()}/v1`;
    const { admin, api } = await startReplicaProcess(['--upstream', provider]);
    // Let the API's Service lead to the admin port, which doesn't serve the API.
    const kubelet = new StandInKubelet(server, NAMESPACE, { admin, api: admin });
    const [{ code, output }, printed] = await Promise.all([
      helm('test', 'holdfast', '--timeout', '90s'),
      // The defect is permanent, so give the test no time for retries.
      kubelet.runOnce('holdfast-test', '0'),
    ]);
    expect(api).not.toBe(admin);
    expect(printed).toMatch(/FAIL .*openapi\.json: 404 /);
    expect({ code, output }).toEqual({ code: 1, output: expect.stringMatching(/Phase:\s+Failed/) });
    expect(await parts()).toEqual({ pod: true, service: false, policy: false });
  });
});
