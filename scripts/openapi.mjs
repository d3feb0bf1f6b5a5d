// The OpenAPI document exactly as a replica serves it.
import fastify from 'fastify';
import { completeConfiguration } from '../src/config/load.ts';
import { OPENAPI_PATH, openApiRoute } from '../src/proxy/api/openapi.ts';
import { runRoutes } from '../src/proxy/api/runs-api.ts';
import { taskRoutes } from '../src/proxy/api/tasks-api.ts';

export async function openApiText() {
  const api = fastify();
  openApiRoute(api);
  // The routes are only registered and never called.
  const context = {
    configuration: completeConfiguration({ upstreams: { any: { base_url: 'http://127.0.0.1:9/v1' } } }),
  };
  for (const routes of [runRoutes, taskRoutes])
    api.register((scope, _options, done) => {
      routes(scope, context);
      done();
    });
  const document = (await api.inject(OPENAPI_PATH)).json();
  return `${JSON.stringify(document, undefined, 2)}\n`;
}
