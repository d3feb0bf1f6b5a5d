import type { FastifyInstance } from 'fastify';
import { VERSION } from '../../lib/version.ts';
import type { Operation } from './openapi-operations.ts';
import { ref, SCHEMAS } from './openapi-schemas.ts';
import { WEBHOOKS } from './openapi-webhooks.ts';
import type { Right } from './signed-urls.ts';

/** Where the document is served. */
export const OPENAPI_PATH = '/holdfast/v1/openapi.json';

const CREDENTIALS = [{ bearer: [] }, { key: [] }];

interface DescribedRoute {
  readonly method: string;
  /** A Fastify URL with `:name` for parameters. */
  readonly url: string;
  readonly operation: Operation;
  readonly right: Right | undefined;
}

/** Serves an OpenAPI document for all routes with an operation that are added after this, in any scope. */
export function openApiRoute(api: FastifyInstance): void {
  const routes: DescribedRoute[] = [];
  api.addHook('onRoute', ({ method, url, config }) => {
    const operation = config?.operation;
    if (operation) routes.push({ method: String(method), url, operation, right: config.right });
  });
  api.get(OPENAPI_PATH, { exposeHeadRoute: false }, () => openApiDocument(routes));
}

function openApiDocument(routes: readonly DescribedRoute[]): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const { method, url, operation, right } of routes) {
    const path = url.replace(/:(\w+)/g, '{$1}');
    const described = operationObject(operation, url);
    const security = right && { security: [...CREDENTIALS, { signature: [] }] };
    paths[path] = { ...paths[path], [method.toLowerCase()]: { ...described, ...security } };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Holdfast',
      version: VERSION,
      description:
        'Runs and tasks, for the credential that their requests were made with. Beside this, /v1 serves the APIs of OpenAI and Anthropic.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: CREDENTIALS,
    tags: [
      { name: 'runs', description: 'One answer each.' },
      { name: 'tasks', description: 'What several requests work on, which are its steps.' },
    ],
    paths,
    webhooks: WEBHOOKS,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        key: { type: 'apiKey', in: 'header', name: 'x-api-key' },
        signature: { type: 'apiKey', in: 'query', name: 'signature', description: 'That of a signed URL.' },
      },
      schemas: SCHEMAS,
    },
  };
}

function operationObject(
  { body, answer, json, empty = {}, errors, parameters = [], ...rest }: Operation,
  url: string,
): object {
  const ofPath = [...url.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const refusal = (description: string) => ({
    description,
    content: { 'application/json': { schema: ref('Error') } },
  });
  const refusals = errors.map((status) => [String(status), refusal('An error of this operation.')]);
  const content = contentOf(answer, json);
  return {
    ...rest,
    parameters: [...ofPath, ...parameters],
    ...(body && {
      requestBody: { required: body.required, content: { 'application/json': { schema: body.schema } } },
    }),
    responses: {
      '200': { description: 'What was asked for.', ...(content && { content }) },
      ...Object.fromEntries(Object.entries(empty).map(([status, description]) => [status, { description }])),
      ...Object.fromEntries(refusals),
      default: refusal('An error that any request may have.'),
    },
  };
}

function contentOf(answer: Operation['answer'], json: Operation['json']): object | undefined {
  if (answer === 'headers') return undefined;
  if (answer !== 'text/event-stream') return { 'application/json': { schema: answer } };
  return {
    'text/event-stream': { schema: { type: 'string' } },
    ...(json && { 'application/json': { schema: json } }),
  };
}
