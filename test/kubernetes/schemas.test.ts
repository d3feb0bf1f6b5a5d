import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { BUILD_LIMIT_MS, helmBinary } from './binaries.ts';
import { documented, type Manifest, manifests, PAGES } from './manifests.ts';
import { PublishedSchemas } from './published-schemas.ts';
import { RENDERINGS, rendered } from './renderings.ts';

/** The oldest release that the chart supports, the newest, and one in between. */
const RELEASES = ['v1.30.14', 'v1.33.13', 'v1.36.3'];
/** Templates with kinds that older releases lack, and the first of `RELEASES` that has them. */
const NEWER = new Map([['sidecar-injection.yaml', 'v1.36.3']]);
/** Each example starts programs, while other tests run. */
const TEST_LIMIT_MS = 120_000;
/** API groups outside Kubernetes, which has no schemas for them. */
const CUSTOM = /^(monitoring\.coreos\.com|gateway\.networking\.k8s\.io|keda\.sh)\//;

describe.each(RELEASES)('the schemas of Kubernetes %s', { timeout: TEST_LIMIT_MS }, (release) => {
  let missing: string | undefined;
  let helm: string;
  let schemas: PublishedSchemas;

  beforeAll(async () => {
    const [binary, published] = [await helmBinary(), await PublishedSchemas.of(release)];
    missing = [binary, published].find((part) => 'missing' in part)?.missing;
    if ('missing' in binary || 'missing' in published) return;
    helm = binary.path;
    schemas = published;
  }, BUILD_LIMIT_MS);

  beforeEach(({ skip }) => skip(missing !== undefined, missing));

  const objections = (all: readonly Manifest[]) =>
    all
      .filter(({ apiVersion }) => !CUSTOM.test(apiVersion))
      .flatMap((manifest) =>
        schemas.objections(manifest).map((said) => `${manifest.kind} ${manifest.name}: ${said}`),
      );

  const renderings = RENDERINGS.filter((name) => release >= (NEWER.get(name) ?? ''));

  test.each(renderings)('have what the chart makes of %s', async (name) => {
    const all = await rendered(helm, name);
    expect(all).not.toEqual([]);
    expect(objections(all)).toEqual([]);
  });

  test.each(PAGES)('have the manifests of %s', (page) => {
    expect(objections(documented(page))).toEqual([]);
  });

  test.each([
    [
      'a field that the kind does not have',
      'v1',
      'spec: { type: ClusterIP, loadbalancer: true }',
      /additional properties/,
    ],
    ['a value of another type', 'v1', 'spec: { publishNotReadyAddresses: sometimes }', /must be boolean/],
    ['a kind that is not there', 'v2', '', /there is no Service of v2/],
  ])('do not have %s', (_, apiVersion, spec, objection) => {
    const manifest = `apiVersion: ${apiVersion}\nkind: Service\nmetadata: { name: wrong }\n${spec}`;
    expect(objections(manifests(manifest))).toContainEqual(expect.stringMatching(objection));
  });
});
