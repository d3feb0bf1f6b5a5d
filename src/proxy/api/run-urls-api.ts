import type { FastifyInstance } from 'fastify';
import type { Owner, RunId } from '../../checkpoint/store.ts';
import { type Fields, readJsonBody } from '../../lib/json-body.ts';
import type { ApiContext } from './api-context.ts';
import { SIGN_URLS, STOP_RUN } from './openapi-operations.ts';
import { holdingBody, takeBody } from './request-bodies.ts';
import { invalid } from './request-fields.ts';
import { PRIVATE, seconds } from './run-documents.ts';
import { cancelRun } from './run-ends.ts';
import { RUN_PATH, runOf } from './run-requests.ts';
import { RIGHTS, type Right, URL_TTL_S_DEFAULT, URL_TTL_S_MAX } from './signed-urls.ts';

const ROUTES: Readonly<Record<Right, string>> = { read: 'stream', stop: 'stop' };

/** Signed URLs that grant one right to a run, and the route that only such URLs need. */
export function runUrlRoutes(api: FastifyInstance, context: ApiContext): void {
  // Doesn't check that the run exists: the URL of a missing run leads to `run_not_found`.
  api.post(`${RUN_PATH}/urls`, { config: { operation: SIGN_URLS } }, (request, reply) =>
    holdingBody(request, async () => {
      const run = runOf(request);
      const { allow, ttl_s } = wantedIn(readJsonBody(takeBody(request)).fields);
      const expires_s = seconds(context.time.wall()) + ttl_s;
      const urlOf = (right: Right, owner: Owner) =>
        `${pathTo(run, right)}?signature=${context.urls.sign(right, run, owner, expires_s)}`;
      const signed = allow.map((right) => [right, urlOf(right, request.owner)]);
      const document = { id: run, object: 'holdfast.urls', ...Object.fromEntries(signed) };
      return reply.headers(PRIVATE).send({ ...document, expires_at: expires_s });
    }),
  );

  // A POST, which a page can send even while it closes. The response omits the answer, because the page may lack the
  // right to read it.
  api.post(
    `${RUN_PATH}/${ROUTES.stop}`,
    { config: { operation: STOP_RUN, right: 'stop' } },
    async (request, reply) => {
      const run = runOf(request);
      const { status } = await cancelRun(run, request.owner, context);
      return reply.headers(PRIVATE).send({ id: run, object: 'holdfast.run', status });
    },
  );
}

const pathTo = (run: RunId, right: Right): string => `${RUN_PATH.replace(':id', run)}/${ROUTES[right]}`;

/** `{allow, ttl_s}`. Throws `invalid_field`. */
function wantedIn({ allow, ttl_s = URL_TTL_S_DEFAULT, ...others }: Fields) {
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw invalid(unknown, 'absent: there are allow and ttl_s');
  if (!Array.isArray(allow) || allow.length === 0 || !allow.every(isRight))
    throw invalid('allow', `a list of what the URLs are for: ${RIGHTS.join(', ')}`);
  if (!Number.isInteger(ttl_s) || (ttl_s as number) < 1 || (ttl_s as number) > URL_TTL_S_MAX)
    throw invalid('ttl_s', `a whole number of seconds, from 1 to ${URL_TTL_S_MAX}`);
  return { allow: allow as Right[], ttl_s: ttl_s as number };
}

const isRight = (value: unknown): boolean => (RIGHTS as readonly unknown[]).includes(value);
