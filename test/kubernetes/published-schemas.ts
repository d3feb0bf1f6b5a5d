import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv, type ValidateFunction } from 'ajv';
import { goModule } from './go-module.ts';
import type { Manifest } from './manifests.ts';

interface Kind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

interface ObjectSchema {
  readonly properties?: object;
  additionalProperties?: unknown;
  readonly 'x-kubernetes-group-version-kind'?: readonly Kind[];
}

interface OpenApiDocument {
  readonly components: { readonly schemas: Readonly<Record<string, ObjectSchema>> };
}

/**
 * The OpenAPI schemas that a Kubernetes release publishes for its own kinds. They don't list the values of
 * enumerations.
 */
export class PublishedSchemas {
  readonly #directory: string;
  readonly #ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true });
  readonly #kinds = new Map<string, ValidateFunction | undefined>();

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /** `release` has the form `v1.36.3`. */
  static async of(release: string): Promise<PublishedSchemas | { readonly missing: string }> {
    const module = await goModule(`k8s.io/kubernetes@${release}`);
    if ('missing' in module) return module;
    return new PublishedSchemas(join(module.directory, 'api', 'openapi-spec', 'v3'));
  }

  /** The manifest's deviations from the schema of its kind: unknown fields, wrong types, missing required fields. */
  objections({ apiVersion, kind, object }: Manifest): string[] {
    if (!this.#kinds.has(`${apiVersion} ${kind}`)) this.#read(apiVersion);
    const valid = this.#kinds.get(`${apiVersion} ${kind}`);
    if (valid === undefined) return [`there is no ${kind} of ${apiVersion}`];
    if (valid(object)) return [];
    return (valid.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  }

  #read(apiVersion: string): void {
    const path = apiVersion.includes('/') ? `apis/${apiVersion}` : `api/${apiVersion}`;
    const file = join(this.#directory, `${path.replaceAll('/', '__')}_openapi.json`);
    if (!existsSync(file)) return;
    const document: OpenApiDocument = JSON.parse(readFileSync(file, 'utf8'));
    const { schemas } = document.components;
    for (const schema of Object.values(schemas)) if (schema.properties) schema.additionalProperties ??= false;
    this.#ajv.addSchema({ $id: apiVersion, ...document });
    for (const [name, schema] of Object.entries(schemas))
      for (const { group, version, kind } of schema['x-kubernetes-group-version-kind'] ?? [])
        if ([group, version].filter(Boolean).join('/') === apiVersion)
          this.#kinds.set(
            `${apiVersion} ${kind}`,
            this.#ajv.getSchema(`${apiVersion}#/components/schemas/${name}`),
          );
  }
}
