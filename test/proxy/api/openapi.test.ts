import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fastify from 'fastify';
import { describe, expect, it, test, vi } from 'vitest';
import { completeConfiguration } from '../../../src/config/load.ts';
import { WEBHOOK_EVENTS } from '../../../src/config/webhook-schema.ts';
import type { ApiContext } from '../../../src/proxy/api/api-context.ts';
import { runRoutes } from '../../../src/proxy/api/runs-api.ts';
import { taskRoutes } from '../../../src/proxy/api/tasks-api.ts';
import { newRunId } from '../../checkpoint/fixtures.ts';
import { NO_UPSTREAM_URL, type Replica, upstreamsAt } from '../../replica.ts';
import { CREDENTIAL, fetchRun, postChat, resume } from '../run-deployment.ts';
import { watchTask } from './event-reader.ts';
import { answerSteps, askStep, askTasks, deployTasks, type TaskDeployment } from './task-deployment.ts';

interface Operation {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: object }>> }>
  >;
}

interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly webhooks: object;
  readonly components: object;
}

async function documentOf({ api }: Replica): Promise<OpenApiDocument> {
  const response = await fetch(`${api}/holdfast/v1/openapi.json`);
  expect([response.status, response.headers.get('content-type')]).toEqual([
    200,
    'application/json; charset=utf-8',
  ]);
  return (await response.json()) as OpenApiDocument;
}

const operationsOf = ({ paths }: OpenApiDocument): readonly Operation[] =>
  Object.values(paths).flatMap((path) => Object.values(path));

/** A way to produce a response. */
type Situation = (deployment: TaskDeployment) => Promise<Response>;

const unreachable =
  (situation: Situation): Situation =>
  async (deployment) => {
    const { store } = deployment.replica;
    store.fault = new Error('away');
    try {
      return await situation(deployment);
    } finally {
      store.fault = undefined;
    }
  };

const tasks =
  (method: string, path: string, body?: unknown, headers?: Record<string, string>): Situation =>
  ({ replica }) =>
    askTasks(replica, method, path, body, headers);
const runs =
  (method: string, path: string): Situation =>
  ({ replica }) =>
    fetch(`${replica.api}/holdfast/v1/runs${path}`, { method, headers: CREDENTIAL });

/** A completed run. */
async function completeRun({ replica }: TaskDeployment): Promise<string> {
  const answer = await postChat(replica);
  await answer.text();
  return String(answer.headers.get('holdfast-run-id'));
}

const ofRun =
  (path: string, method = 'GET'): Situation =>
  async (deployment) =>
    fetchRun(deployment.replica, `${await completeRun(deployment)}${path}`, { method });
const resuming =
  (body: unknown): Situation =>
  async (deployment) =>
    resume(deployment.replica, (await completeRun(deployment)) as never, body);

const streamPath = (run: string, query: string) => `${run}/stream?${query}`;

/** A long poll after the last event. */
const atTail: Situation = async (deployment) => {
  const run = await completeRun(deployment);
  return vi.waitFor(async () => {
    const { headers } = await fetchRun(deployment.replica, streamPath(run, 'offset=now'));
    expect(headers.get('stream-closed')).toBe('true');
    const offset = headers.get('stream-next-offset');
    return fetchRun(deployment.replica, streamPath(run, `offset=${offset}&live=long-poll`));
  });
};

/** A conditional request for what the client already has. */
const unchanged: Situation = async (deployment) => {
  const run = await completeRun(deployment);
  return vi.waitFor(async () => {
    const { headers } = await fetchRun(deployment.replica, streamPath(run, 'offset=-1'));
    expect(headers.get('stream-closed')).toBe('true');
    const condition = { 'if-none-match': String(headers.get('etag')) };
    return fetchRun(deployment.replica, streamPath(run, 'offset=-1'), { headers: condition });
  });
};

const signing =
  (body: unknown, run = newRunId() as string): Situation =>
  ({ replica }) => {
    const headers = { 'content-type': 'application/json' };
    return fetchRun(replica, `${run}/urls`, { method: 'POST', headers, body: JSON.stringify(body) });
  };

/** A task with one step, ended in the given way. */
async function begin({ replica }: TaskDeployment, end?: string): Promise<void> {
  await answerSteps(replica, 1);
  await vi.waitFor(async () => expect((await askTasks(replica, 'GET', '/T23')).status).toBe(200));
  if (end !== undefined) expect((await askTasks(replica, 'POST', `/T23/${end}`)).status).toBe(200);
}

const ofTask =
  (method: string, path: string, body?: unknown, end?: string): Situation =>
  async (deployment) => {
    await begin(deployment, end);
    return askTasks(deployment.replica, method, `/T23${path}`, body);
  };

/** A task in which a process sent another step than its predecessor. */
const diverged: Situation = async (deployment) => {
  await begin(deployment);
  const headers = { ...CREDENTIAL, 'holdfast-task-session': 'second' };
  await (await askStep(deployment.replica, 2, 'T23', headers)).text();
  const show = tasks('GET', '/T23');
  await vi.waitFor(async () => {
    const task = await (await show(deployment)).json();
    expect(task).toMatchObject({ diverged: { step: 1, by_step: 2 } });
  });
  return show(deployment);
};

const CALL = '/calls/c1';
/** `last`, once these requests about a call have been answered in order. */
const afterwards =
  (before: readonly (readonly [method: string, path: string, body: object])[], last: Situation): Situation =>
  async (deployment) => {
    await begin(deployment);
    for (const [method, path, body] of before)
      expect((await askTasks(deployment.replica, method, `/T23${CALL}${path}`, body)).status).toBe(200);
    return last(deployment);
  };
const claim = (name: string, more: object = {}) =>
  tasks('POST', `/T23${CALL}/claim`, { claim: name, ...more });
const NO_RUN = '/run_AAAAAAAAAAAAAAAAAAAAAA';

const change = (verb: string, contrary: string) => ({
  200: [ofTask('POST', `/${verb}`, { reason: 'lunch' }), ofTask('POST', `/${verb}`)],
  400: [ofTask('POST', `/${verb}`, { reason: 7 }), tasks('POST', `/T23/${verb}`, undefined, {})],
  404: [tasks('POST', `/T24/${verb}`)],
  410: [ofTask('POST', `/${verb}`, undefined, contrary)],
  503: [unreachable(tasks('POST', `/T23/${verb}`))],
});

const SITUATIONS: Readonly<Record<string, Readonly<Record<string, readonly Situation[]>>>> = {
  listRuns: {
    200: [
      async (deployment) => {
        await completeRun(deployment);
        return runs('GET', '')(deployment);
      },
    ],
    400: [runs('GET', '?limit=0'), runs('GET', '?state=lost'), runs('GET', '?after=1')],
    503: [unreachable(runs('GET', ''))],
  },
  cancelRunOfKey: {
    200: [
      async ({ replica }) => {
        const keyed = { 'idempotency-key': 'k1' };
        await (await postChat(replica, keyed)).text();
        const headers = { ...CREDENTIAL, ...keyed };
        return fetch(`${replica.api}/holdfast/v1/runs`, { method: 'DELETE', headers });
      },
    ],
    400: [runs('DELETE', '')],
    404: [
      ({ replica }) =>
        fetch(`${replica.api}/holdfast/v1/runs`, {
          method: 'DELETE',
          headers: { ...CREDENTIAL, 'idempotency-key': 'unknown' },
        }),
    ],
    503: [
      unreachable(({ replica }) =>
        fetch(`${replica.api}/holdfast/v1/runs`, {
          method: 'DELETE',
          headers: { ...CREDENTIAL, 'idempotency-key': 'k1' },
        }),
      ),
    ],
  },
  showRun: {
    200: [
      ofRun(''),
      async ({ replica, provider }) => {
        provider.manner = 'begins';
        const answer = await postChat(replica);
        const shown = await fetchRun(replica, String(answer.headers.get('holdfast-run-id')));
        await answer.body?.cancel();
        return shown;
      },
    ],
    404: [runs('GET', NO_RUN), runs('GET', '/nothing')],
    503: [unreachable(runs('GET', NO_RUN))],
  },
  streamRun: {
    200: [
      ofRun('/stream'),
      ofRun('/stream?starting_after=1'),
      ofRun('/stream?offset=-1'),
      ofRun('/stream?offset=-1&live=sse'),
    ],
    204: [atTail],
    304: [unchanged],
    400: [ofRun('/stream?starting_after=x')],
    403: [ofRun('/stream?signature=x')],
    404: [runs('GET', `${NO_RUN}/stream`)],
    409: [ofRun('/stream?starting_after=999')],
    503: [unreachable(runs('GET', `${NO_RUN}/stream`))],
  },
  showStream: { 200: [ofRun('/stream', 'HEAD')] },
  signRunUrls: {
    200: [signing({ allow: ['read'] }), signing({ allow: ['read', 'stop'], ttl_s: 1 })],
    400: [signing({ allow: ['write'] })],
    404: [signing({ allow: ['read'] }, 'nothing')],
  },
  stopRun: {
    200: [ofRun('/stop', 'POST')],
    403: [ofRun('/stop?signature=x', 'POST')],
    404: [runs('POST', `${NO_RUN}/stop`)],
    503: [unreachable(runs('POST', `${NO_RUN}/stop`))],
  },
  resumeRun: {
    200: [resuming({ cursor: 0 }), resuming({ cursor: 1, tail: [] })],
    400: [resuming({}), resuming({ cursor: -1 }), resuming({ cursor: 0, tail: ['x'] })],
    404: [({ replica }) => resume(replica, NO_RUN.slice(1) as never, { cursor: 0 })],
    409: [resuming({ cursor: 999 })],
    503: [unreachable(({ replica }) => resume(replica, NO_RUN.slice(1) as never, { cursor: 0 }))],
  },
  cancelRun: {
    200: [ofRun('', 'DELETE'), ofRun('?purge=true', 'DELETE')],
    400: [ofRun('?purge=no', 'DELETE')],
    404: [runs('DELETE', NO_RUN)],
    503: [unreachable(runs('DELETE', NO_RUN))],
  },
  listTasks: {
    200: [
      async (deployment) => {
        await begin(deployment);
        return tasks('GET', '?limit=1')(deployment);
      },
      tasks('GET', '?status=paused'),
    ],
    400: [tasks('GET', '?limit=0'), tasks('GET', '?status=lost'), tasks('GET', '', undefined, {})],
    503: [unreachable(tasks('GET', ''))],
  },
  showTask: {
    200: [
      ofTask('GET', ''),
      ofTask('GET', '', undefined, 'pause'),
      ofTask('GET', '', undefined, 'complete'),
      async (deployment) => {
        await begin(deployment);
        deployment.provider.manner = 'refuses';
        await (await askStep(deployment.replica, 2)).text();
        return tasks('GET', '/T23')(deployment);
      },
      diverged,
    ],
    400: [tasks('GET', '/T23', undefined, {}), tasks('GET', `/${'x'.repeat(257)}`)],
    404: [tasks('GET', '/T24')],
    503: [unreachable(tasks('GET', '/T23'))],
  },
  putTask: {
    200: [
      tasks('PUT', '/T23', {}),
      ofTask('PUT', '', { description: 'x', steps_total: 7, deadline_at: null, budget_tokens: 100 }),
    ],
    400: [tasks('PUT', '/T23', { steps_total: 0 }), tasks('PUT', '/T23', {}, {})],
    410: [ofTask('PUT', '', {}, 'complete')],
    503: [unreachable(tasks('PUT', '/T23', {}))],
  },
  listSteps: {
    200: [ofTask('GET', '/steps'), ofTask('GET', '/steps?limit=1&after=0')],
    400: [ofTask('GET', '/steps?after=x')],
    404: [tasks('GET', '/T24/steps')],
    503: [unreachable(tasks('GET', '/T23/steps'))],
  },
  streamTask: {
    200: [ofTask('GET', '/events', undefined, 'complete'), ofTask('GET', '/events', undefined, 'cancel')],
    400: [tasks('GET', '/T23/events', undefined, {}), ofTask('GET', '/events?after=x')],
    404: [tasks('GET', '/T24/events')],
    503: [unreachable(tasks('GET', '/T23/events'))],
  },
  showTranscript: {
    200: [
      ofTask('GET', '/transcript'),
      ofTask('GET', '/transcript?limit=1&after=0'),
      async (deployment) => {
        await begin(deployment);
        const { data } = (await (await tasks('GET', '/T23/transcript')(deployment)).json()) as {
          data: { run: string }[];
        };
        await fetchRun(deployment.replica, `${data[0]?.run}?purge=true`, { method: 'DELETE' });
        return tasks('GET', '/T23/transcript')(deployment);
      },
    ],
    400: [ofTask('GET', '/transcript?after=x')],
    404: [tasks('GET', '/T24/transcript')],
    503: [unreachable(tasks('GET', '/T23/transcript'))],
  },
  listCalls: {
    200: [
      ofTask('GET', '/calls'),
      afterwards([['POST', '/claim', { claim: 'first' }]], tasks('GET', '/T23/calls')),
      afterwards(
        [
          ['POST', '/claim', { claim: 'first' }],
          ['PUT', '/result', { claim: 'first', result: { sent: true } }],
        ],
        tasks('GET', '/T23/calls?limit=1'),
      ),
    ],
    400: [ofTask('GET', '/calls?limit=0')],
    404: [tasks('GET', '/T24/calls')],
    503: [unreachable(tasks('GET', '/T23/calls'))],
  },
  deleteTask: {
    200: [ofTask('DELETE', '')],
    400: [tasks('DELETE', '/T23', undefined, {})],
    404: [tasks('DELETE', '/T24')],
    503: [unreachable(tasks('DELETE', '/T23'))],
  },
  pauseTask: change('pause', 'complete'),
  resumeTask: change('resume', 'cancel'),
  completeTask: change('complete', 'cancel'),
  cancelTask: change('cancel', 'complete'),
  claimCall: {
    200: [
      ofTask('POST', `${CALL}/claim`, { claim: 'first' }),
      afterwards([['POST', '/claim', { claim: 'first' }]], claim('second')),
      afterwards(
        [
          ['POST', '/claim', { claim: 'first' }],
          ['PUT', '/result', { claim: 'first', result: { sent: true } }],
        ],
        claim('second'),
      ),
      afterwards([['POST', '/claim', { claim: 'first', hold_ms: 1 }]], async (deployment) => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        return claim('second')(deployment);
      }),
    ],
    400: [ofTask('POST', `${CALL}/claim`, {}), ofTask('POST', `${CALL}/claim`, { claim: 'c', hold_ms: 0 })],
    404: [tasks('POST', `/T24${CALL}/claim`, { claim: 'first' })],
    409: [
      afterwards(
        [
          ['POST', '/claim', { claim: 'first' }],
          ['POST', '/release', { claim: 'first' }],
        ],
        claim('first'),
      ),
    ],
    503: [unreachable(claim('first'))],
    default: [
      ({ replica }) =>
        fetch(`${replica.api}/holdfast/v1/tasks/T23${CALL}/claim`, {
          method: 'POST',
          headers: { ...CREDENTIAL, 'content-type': 'text/plain' },
          body: 'first',
        }),
    ],
  },
  keepResult: {
    200: [
      afterwards(
        [['POST', '/claim', { claim: 'first' }]],
        tasks('PUT', `/T23${CALL}/result`, { claim: 'first', result: [1] }),
      ),
    ],
    400: [tasks('PUT', `/T23${CALL}/result`, {})],
    409: [tasks('PUT', `/T23${CALL}/result`, { claim: 'never' })],
    413: [
      afterwards(
        [['POST', '/claim', { claim: 'first' }]],
        tasks('PUT', `/T23${CALL}/result`, { claim: 'first', result: 'x'.repeat(20_000) }),
      ),
    ],
    503: [unreachable(tasks('PUT', `/T23${CALL}/result`, { claim: 'first' }))],
  },
  releaseCall: {
    200: [
      afterwards(
        [['POST', '/claim', { claim: 'first' }]],
        tasks('POST', `/T23${CALL}/release`, { claim: 'first' }),
      ),
    ],
    400: [tasks('POST', `/T23${CALL}/release`, { claim: '' })],
    409: [tasks('POST', `/T23${CALL}/release`, { claim: 'never' })],
    503: [unreachable(tasks('POST', `/T23${CALL}/release`, { claim: 'first' }))],
  },
};

/** By the text of the document. Every replica has the same one, and compiling it takes longer than a response. */
const compiled = new Map<string, Ajv2020>();

/** Validates against the schemas of the document. */
function validatorOf(document: OpenApiDocument) {
  const text = JSON.stringify(document);
  const ajv = compiled.get(text) ?? new Ajv2020({ strict: false }).addSchema({ $id: 'openapi', ...document });
  compiled.set(text, ajv);
  return (schema: object, value: unknown): string => {
    const absolute = JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"openapi#/components'));
    return ajv.validate(absolute, value) ? '' : ajv.errorsText();
  };
}

test('no route of ours lacks an operation', async () => {
  const api = fastify();
  const without: string[] = [];
  let routes = 0;
  api.addHook('onRoute', ({ method, url, config }) => {
    routes++;
    if (!config?.operation) without.push(`${String(method)} ${url}`);
  });
  const context = {
    configuration: completeConfiguration(upstreamsAt(NO_UPSTREAM_URL)),
  } as unknown as ApiContext;
  for (const add of [runRoutes, taskRoutes])
    api.register((scope, _options, done) => {
      add(scope, context);
      done();
    });
  await api.ready();
  expect([without, routes]).toEqual([[], Object.keys(SITUATIONS).length]);
});

test('the OpenAPI document is one, and describes every route', async () => {
  const { replica } = await deployTasks();
  const document = await documentOf(replica);
  const { valid, errors } = await new Validator().validate({ ...structuredClone(document) });
  expect({ valid, errors }).toEqual({ valid: true, errors: undefined });
  const ids = operationsOf(document).map(({ operationId }) => operationId);
  expect(new Set(ids)).toEqual(new Set(Object.keys(SITUATIONS)));
  expect(new Set(ids).size).toBe(ids.length);
});

test('the OpenAPI document has every event that an endpoint can get', async () => {
  const { replica } = await deployTasks();
  const { webhooks } = await documentOf(replica);
  expect(Object.keys(webhooks)).toEqual(WEBHOOK_EVENTS);
});

test('the events of a task are what the OpenAPI document says', async () => {
  const deployment = await deployTasks();
  const document = await documentOf(deployment.replica);
  const isValid = validatorOf(document);
  const schemas: Readonly<Record<string, string>> = { task: 'Task', step: 'StepEvent', call: 'CallEvent' };
  deployment.provider.manner = 'breaks';
  await afterwards([['POST', '/claim', { claim: 'first' }]], ofTask('POST', '/complete'))(deployment);
  const { events, ended } = await watchTask(deployment.other);
  await ended;
  for (const { name, data } of events)
    expect(isValid({ $ref: `#/components/schemas/${schemas[name]}` }, data), JSON.stringify(data)).toBe('');
  expect(new Set(events.map(({ name }) => name))).toEqual(new Set(Object.keys(schemas)));
});

describe('every answer that the OpenAPI document promises is given', () => {
  const operations = Object.entries(SITUATIONS).flatMap(([operationId, answers]) =>
    Object.entries(answers).map(([status, situations]) => [operationId, status, situations] as const),
  );

  it.each(operations)('%s: %s', async (operationId, status, situations) => {
    for (const situation of situations) {
      const deployment = await deployTasks();
      const document = await documentOf(deployment.replica);
      const operation = operationsOf(document).find((each) => each.operationId === operationId);
      const described = operation?.responses[status];
      if (!described) throw new Error(`${operationId} does not say that it may be ${status}`);
      const answer = await situation(deployment);
      const type = String(answer.headers.get('content-type')).split(';', 1)[0] ?? '';
      const body = await answer.text();
      if (status === 'default') expect(operation.responses[answer.status], body).toBeUndefined();
      else expect(answer.status, body).toBe(Number(status));
      if (!described.content) {
        expect(body).toBe('');
        continue;
      }
      const { schema } = described.content[type] ?? {};
      if (!schema) throw new Error(`${operationId} does not say that it may be ${type}`);
      if (type === 'application/json') expect(validatorOf(document)(schema, JSON.parse(body)), body).toBe('');
      else expect(body).toMatch(/^data:/m);
    }
  });

  test('and no other', async () => {
    const { replica } = await deployTasks();
    for (const { operationId, responses } of operationsOf(await documentOf(replica))) {
      const statuses = Object.keys(responses).filter((status) => status !== 'default');
      const known = Object.keys(SITUATIONS[operationId] ?? {}).filter((status) => status !== 'default');
      expect(known, operationId).toEqual(statuses);
    }
  });
});
