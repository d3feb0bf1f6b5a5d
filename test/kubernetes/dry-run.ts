import type { ApiAnswer, ApiServer } from './api-server.ts';
import type { Manifest } from './manifests.ts';

interface Resource {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/** Submits manifests to an API server as `kubectl apply --server-side --dry-run=server` does. */
export class DryRun {
  readonly #server: ApiServer;
  readonly #resources = new Map<string, readonly Resource[]>();
  readonly #namespaces = new Set<string>();

  constructor(server: ApiServer) {
    this.#server = server;
  }

  /**
   * The server's objections, empty if it accepts the manifest as it is. They include unknown and duplicate fields,
   * invalid values, and warnings.
   */
  async objections(manifest: Manifest): Promise<readonly string[]> {
    const path = await this.#pathOf(manifest);
    if (path === undefined) return [`the server has no ${manifest.kind} of ${manifest.apiVersion}`];
    return saidBy(
      await this.#server.apply(path, manifest.text, { dryRun: 'All', fieldValidation: 'Strict' }),
    );
  }

  /** The path at which to apply the manifest. Creates its namespace first, which admits only "restricted" pods. */
  async #pathOf({ apiVersion, kind, namespace, name }: Manifest): Promise<string | undefined> {
    const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const resource = (await this.#resourcesAt(root)).find((resource) => resource.kind === kind);
    if (resource === undefined) return undefined;
    if (!resource.namespaced) return `${root}/${resource.name}/${name}`;
    await this.#restrictedNamespace(namespace);
    return `${root}/namespaces/${namespace}/${resource.name}/${name}`;
  }

  async #resourcesAt(root: string): Promise<readonly Resource[]> {
    const known = this.#resources.get(root);
    if (known) return known;
    const { status, body } = await this.#server.request(root);
    if (status !== 200) return [];
    // Subresources such as `pods/status` have no manifests.
    const resources = (body as { resources: Resource[] }).resources.filter(({ name }) => !name.includes('/'));
    this.#resources.set(root, resources);
    return resources;
  }

  async #restrictedNamespace(name: string): Promise<void> {
    if (this.#namespaces.has(name)) return;
    const labels = Object.fromEntries(
      ['enforce', 'warn', 'audit'].map((mode) => [`pod-security.kubernetes.io/${mode}`, 'restricted']),
    );
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } };
    const objections = saidBy(
      await this.#server.apply(`/api/v1/namespaces/${name}`, JSON.stringify(namespace)),
    );
    if (objections.length > 0) throw new Error(objections.join('\n'));
    this.#namespaces.add(name);
  }
}

function saidBy({ status, warnings, body }: ApiAnswer): string[] {
  const refusal = status === 200 || status === 201 ? [] : [(body as { message?: string }).message ?? body];
  return [...refusal, ...warnings].map(String);
}
