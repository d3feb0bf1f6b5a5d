import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse } from 'yaml';
import type { ApiServer } from './api-server.ts';
import { goModule } from './go-module.ts';

const ESTABLISHED_LIMIT_MS = 60_000;
const POLL_MS = 100;

/** Where the projects publish the custom resources that the chart uses. */
const PUBLISHED = [
  {
    module: 'github.com/prometheus-operator/prometheus-operator@v0.85.0',
    directory: 'example/prometheus-operator-crd',
    files: ['podmonitors', 'prometheusrules', 'servicemonitors'].map(
      (kind) => `monitoring.coreos.com_${kind}.yaml`,
    ),
  },
  {
    module: 'sigs.k8s.io/gateway-api@v1.4.1',
    directory: 'config/crd/standard',
    files: ['gateways', 'httproutes'].map((kind) => `gateway.networking.k8s.io_${kind}.yaml`),
  },
  {
    module: 'github.com/kedacore/keda/v2@v2.21.0',
    directory: 'config/crd/bases',
    files: ['keda.sh_scaledobjects.yaml'],
  },
];

interface Definition {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly group: string;
    readonly names: { readonly plural: string };
    readonly versions: readonly { readonly name: string; readonly served: boolean }[];
  };
}

/** The published definitions, or the reason why they are unavailable. */
export async function customResources(): Promise<
  { readonly definitions: readonly string[] } | { readonly missing: string }
> {
  const definitions: string[] = [];
  for (const { module, directory, files } of PUBLISHED) {
    const found = await goModule(module);
    if ('missing' in found) return found;
    for (const file of files) definitions.push(readFileSync(join(found.directory, directory, file), 'utf8'));
  }
  return { definitions };
}

/** Resolves once the server accepts manifests of these kinds. */
export async function installCustomResources(
  server: ApiServer,
  definitions: readonly string[],
): Promise<void> {
  for (const text of definitions) {
    const { metadata, spec }: Definition = parse(text);
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${metadata.name}`;
    const { status, body } = await server.apply(path, text);
    if (status !== 201) throw new Error(`${metadata.name}: ${JSON.stringify(body)}`);
    for (const { name, served } of spec.versions)
      if (served) await isServed(server, `/apis/${spec.group}/${name}/${spec.names.plural}`);
  }
}

async function isServed(server: ApiServer, path: string): Promise<void> {
  const signal = AbortSignal.timeout(ESTABLISHED_LIMIT_MS);
  while ((await server.request(path)).status !== 200) await sleep(POLL_MS, undefined, { signal });
}
