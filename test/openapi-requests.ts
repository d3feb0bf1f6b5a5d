import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';

interface Operation {
  readonly operationId: string;
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: { readonly 'application/json': { readonly schema: object } };
  };
}

const DOCUMENT = JSON.parse(readFileSync(new URL('../holdfast.openapi.json', import.meta.url), 'utf8')) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
};

/**
 * The operation of `/holdfast/v1` that the request matches in holdfast.openapi.json. Throws if the request doesn't
 * conform. `body` is its parsed JSON, or `undefined` if there is none.
 */
export function operationOf(method: string, url: string, body: unknown): string {
  const { pathname } = new URL(url);
  for (const [path, operations] of Object.entries(DOCUMENT.paths)) {
    const pattern = new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`);
    const operation = pattern.test(pathname) ? operations[method.toLowerCase()] : undefined;
    if (!operation) continue;
    const { operationId, requestBody } = operation;
    if (body === undefined && !requestBody?.required) return operationId;
    const ajv = new Ajv2020({ strict: false });
    const schema = requestBody?.content['application/json'].schema ?? false;
    if (ajv.validate(schema, body)) return operationId;
    throw new Error(`the body of ${operationId} is not as described: ${ajv.errorsText()}`);
  }
  throw new Error(`${method} ${pathname} is not described`);
}
