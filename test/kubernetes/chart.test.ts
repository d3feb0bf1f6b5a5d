import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ApiServer } from './api-server.ts';
import { apiServerBinary, BUILD_LIMIT_MS, etcdBinary, helmBinary } from './binaries.ts';
import { customResources, installCustomResources } from './custom-resources.ts';
import { DryRun } from './dry-run.ts';
import { documented, type Manifest, manifests, PAGES, podsOf } from './manifests.ts';
import { REFUSED } from './refused-manifests.ts';
import { RENDERINGS, rendered, TEMPLATES } from './renderings.ts';

/** Each example starts programs, while other tests run. */
const TEST_LIMIT_MS = 120_000;

let missing: string | undefined;
let helm: string;
let server: ApiServer | undefined;
let dryRun: DryRun;

beforeAll(async () => {
  // Build Helm first because other test files wait for it.
  const [chart, etcd, apiServer, kinds] = [
    await helmBinary(),
    await etcdBinary(),
    await apiServerBinary(),
    await customResources(),
  ];
  missing = [chart, etcd, apiServer, kinds].find((part) => 'missing' in part)?.missing;
  if ('missing' in chart || 'missing' in etcd || 'missing' in apiServer || 'missing' in kinds) return;
  helm = chart.path;
  server = await ApiServer.start({ etcd: etcd.path, apiServer: apiServer.path });
  await installCustomResources(server, kinds.definitions);
  dryRun = new DryRun(server);
}, BUILD_LIMIT_MS);

beforeEach(({ skip }) => skip(missing !== undefined, missing));

afterAll(() => server?.stop());

/** The server's objections to each manifest, and to the pods that workloads would create. */
async function objections(all: readonly Manifest[]): Promise<string[]> {
  const said: string[] = [];
  for (const manifest of all.flatMap((manifest) => [manifest, ...podsOf(manifest)]))
    for (const objection of await dryRun.objections(manifest))
      said.push(`${manifest.kind} ${manifest.name}: ${objection}`);
  return said;
}

describe('a real API server', { timeout: TEST_LIMIT_MS }, () => {
  test.each(RENDERINGS)('takes what the chart makes of %s', async (name) => {
    const all = await rendered(helm, name);
    expect(all).not.toEqual([]);
    expect(await objections(all)).toEqual([]);
  });

  test('is asked about what each template makes', async () => {
    const all = (await Promise.all(RENDERINGS.map((name) => rendered(helm, name)))).flat();
    const used = new Set(all.map(({ text }) => /^# Source: holdfast\/(.*)$/m.exec(text)?.[1]));
    expect(TEMPLATES.filter((template) => !used.has(template))).toEqual([]);
  });

  test.each(PAGES)('takes the manifests of %s', async (page) => {
    expect(await objections(documented(page))).toEqual([]);
  });

  test.each(REFUSED)('objects to $what', async ({ manifest, objection }) => {
    expect(await objections(manifests(manifest))).toContainEqual(expect.stringMatching(objection));
  });
});

test('the sidecar guide shows a whole workload with a native sidecar', () => {
  const sidecars = documented('docs/sidecar.md')
    .flatMap(podsOf)
    .flatMap(
      ({ object }) =>
        (object as { spec: { initContainers?: { restartPolicy?: string }[] } }).spec.initContainers ?? [],
    );
  expect(sidecars).toContainEqual(expect.objectContaining({ restartPolicy: 'Always' }));
});
