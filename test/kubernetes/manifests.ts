import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The pages that show manifests. */
export const PAGES = globSync(['*.md', 'docs/**/*.md', 'helm/**/*.md'], { cwd: ROOT })
  .filter((page) => blocksOf(page).length > 0)
  .sort();
/** The namespace for rendering the chart, and the default for manifests without one. */
export const NAMESPACE = 'holdfast';

/** The text of a manifest, and the fields that identify its object. */
export interface Manifest {
  readonly text: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace: string;
  /** The parsed text, in the shape of its kind if it is valid. */
  readonly object: Readonly<Record<string, unknown>>;
}

/** The manifests in a page's fenced blocks. */
export function documented(page: string): Manifest[] {
  return blocksOf(page).flatMap(manifests);
}

/** Excludes templates, which aren't manifests yet. */
function blocksOf(page: string): string[] {
  const blocks = readFileSync(join(ROOT, page), 'utf8').matchAll(/^( *)```ya?ml\b[^\n]*\n(.*?)^\1```/gms);
  return [...blocks]
    .map(([, indent, block = '']) => block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''))
    .filter((block) => /^apiVersion:/m.test(block) && /^kind:/m.test(block) && !block.includes('{{'));
}

/** The documents of a YAML stream that have an API version and a kind, with their text unchanged. */
export function manifests(stream: string): Manifest[] {
  return stream.split(/^---.*$/m).flatMap((text) => {
    // Duplicate keys are left for the server to refuse.
    const object = parse(text, { uniqueKeys: false });
    if (typeof object?.apiVersion !== 'string' || typeof object.kind !== 'string') return [];
    const { name = '', namespace = NAMESPACE } = object.metadata ?? {};
    return [{ text, apiVersion: object.apiVersion, kind: object.kind, name, namespace, object }];
  });
}

/** The pod that a workload would create, as a separate manifest; empty for other kinds. */
export function podsOf({ name, namespace, object }: Manifest): Manifest[] {
  const { spec } = object as { spec?: WorkloadSpec };
  const template = spec?.template ?? spec?.jobTemplate?.spec?.template;
  if (template?.spec === undefined) return [];
  const claimed = (spec?.volumeClaimTemplates ?? []).map(({ metadata }) => ({
    name: metadata.name,
    persistentVolumeClaim: { claimName: `${metadata.name}-${name}-0` },
  }));
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...template.metadata, name, namespace },
    spec: { ...template.spec, volumes: [...(template.spec.volumes ?? []), ...claimed] },
  };
  return [{ text: JSON.stringify(pod), apiVersion: 'v1', kind: 'Pod', name, namespace, object: pod }];
}

/** The spec of a Deployment, a StatefulSet, a DaemonSet, a Job or a CronJob. */
interface WorkloadSpec {
  readonly template?: {
    readonly metadata?: object;
    readonly spec?: { readonly volumes?: readonly object[] };
  };
  readonly jobTemplate?: { readonly spec?: WorkloadSpec };
  readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[];
}
