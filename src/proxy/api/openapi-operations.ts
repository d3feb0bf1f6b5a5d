import { TTL_S_MAX } from '../../config/recovery-schema.ts';
import { LIVE_MODES } from './durable-stream.ts';
import { nullable, ref, type Schema } from './openapi-schemas.ts';
import { NAME_CHARACTERS_MAX } from './request-fields.ts';
import { LIMIT_DEFAULT, LIMIT_MAX, RUN_STATES } from './run-documents.ts';
import { RIGHTS, URL_TTL_S_DEFAULT, URL_TTL_S_MAX } from './signed-urls.ts';
import { DESCRIPTION_CHARACTERS_MAX } from './task-bodies.ts';
import { TASK_STATUSES } from './task-documents.ts';
import { BUDGET_TOKENS_MAX, STEPS_TOTAL_MAX } from './task-options.ts';
import { HOLD_MS_DEFAULT, HOLD_MS_MAX } from './task-requests.ts';

interface Parameter {
  readonly name: string;
  readonly in: 'query' | 'header';
  readonly description: string;
  readonly schema: Schema;
}

/** One route as OpenAPI describes it. Path parameters come from the route's URL. */
export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly ['runs' | 'tasks'];
  readonly parameters?: readonly Parameter[];
  /** A JSON body. */
  readonly body?: { readonly schema: Schema; readonly required: boolean };
  /** The 200 response: the schema of its JSON, an event stream, or headers only. */
  readonly answer: Schema | 'text/event-stream' | 'headers';
  /** The JSON alternative to an event stream. */
  readonly json?: Schema;
  /** Successful statuses without a body, with descriptions. */
  readonly empty?: Readonly<Record<number, string>>;
  /** Error statuses. */
  readonly errors: readonly number[];
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Set for routes that the OpenAPI document describes. */
    operation?: Operation;
  }
}

const text = { type: 'string' };
const name = { type: 'string', minLength: 1, maxLength: NAME_CHARACTERS_MAX };

const query = (of: string, description: string, schema: Schema = text): Parameter => ({
  name: of,
  in: 'query',
  description,
  schema,
});
const header = (of: string, description: string): Parameter => ({
  name: of,
  in: 'header',
  description,
  schema: text,
});

const LIMIT = query('limit', 'How many at most.', {
  type: 'integer',
  minimum: 1,
  maximum: LIMIT_MAX,
  default: LIMIT_DEFAULT,
});
const AFTER = query('after', 'The `next` of the page before.');
const LAST_EVENT = header('Last-Event-ID', 'The id of the last event that the client has.');

const RUNS = ['runs'] as const;
const TASKS = ['tasks'] as const;

export const LIST_RUNS: Operation = {
  operationId: 'listRuns',
  summary: 'Lists the runs of the credential, newest first',
  tags: RUNS,
  parameters: [
    query('thread', 'Only those of this `Holdfast-Thread`.', name),
    query('state', 'Only those in this state.', { enum: RUN_STATES }),
    LIMIT,
    AFTER,
  ],
  answer: ref('RunList'),
  errors: [400, 503],
};
export const CANCEL_KEYED_RUN: Operation = {
  operationId: 'cancelRunOfKey',
  summary: 'Cancels the run of a request whose answer has not begun',
  tags: RUNS,
  parameters: [header('Idempotency-Key', 'That of the request.')],
  answer: ref('Run'),
  errors: [400, 404, 503],
};
export const SHOW_RUN: Operation = {
  operationId: 'showRun',
  summary: 'Shows a run, and what it has said',
  tags: RUNS,
  answer: ref('Run'),
  errors: [404, 503],
};
export const STREAM_RUN: Operation = {
  operationId: 'streamRun',
  summary: 'Streams a run from a cursor on, and its rest as it comes',
  tags: RUNS,
  parameters: [
    query('starting_after', 'How many events the client has.', { type: 'integer', minimum: 0, default: 0 }),
    query(
      'offset',
      'The `Stream-Next-Offset` of the answer before, `-1` for the beginning, or `now`. Makes this a read of the Durable Streams protocol, for what is stored.',
    ),
    query('live', 'How to wait for more after `offset`.', { enum: LIVE_MODES }),
    query('cursor', 'The `Stream-Cursor` of the answer before.'),
    LAST_EVENT,
    header('If-None-Match', 'The `ETag` of an answer that the client has.'),
  ],
  answer: 'text/event-stream',
  json: { type: 'array', items: { type: 'object' }, description: 'With `offset`, and without `live=sse`.' },
  empty: { 204: 'Nothing more was stored meanwhile.', 304: 'The client has this answer.' },
  errors: [400, 403, 404, 409, 503],
};
export const SHOW_STREAM: Operation = {
  operationId: 'showStream',
  summary:
    'Says in `Stream-Next-Offset` where the stored part of a stream ends, and in `Stream-Closed` whether it stays so',
  tags: RUNS,
  answer: 'headers',
  errors: [],
};
export const RESUME_RUN: Operation = {
  operationId: 'resumeRun',
  summary: 'Streams the rest of a run to a client that is ahead of what is stored',
  tags: RUNS,
  parameters: [LAST_EVENT],
  body: {
    required: true,
    schema: {
      type: 'object',
      required: ['cursor'],
      properties: {
        cursor: { type: 'integer', minimum: 0, description: 'How many events the client has.' },
        tail: { type: 'array', items: text, description: 'The payloads of the last of them.' },
        request: {
          type: 'object',
          description: 'The request of the run, which need not have been stored.',
          required: ['path', 'body'],
          properties: { path: text, body: text },
        },
      },
    },
  },
  answer: 'text/event-stream',
  errors: [400, 404, 409, 503],
};
export const DELETE_RUN: Operation = {
  operationId: 'cancelRun',
  summary: 'Cancels a run, and with `purge` forgets it',
  tags: RUNS,
  parameters: [query('purge', 'Whether it is forgotten, too.', { enum: ['true'] })],
  answer: { anyOf: [ref('Run'), ref('PurgedRun')] },
  errors: [400, 404, 503],
};

export const SIGN_URLS: Operation = {
  operationId: 'signRunUrls',
  summary: 'Signs URLs which allow a page one thing with a run for a while, without a credential',
  tags: RUNS,
  body: {
    required: true,
    schema: {
      type: 'object',
      additionalProperties: false,
      required: ['allow'],
      properties: {
        allow: { type: 'array', items: { enum: RIGHTS }, minItems: 1 },
        ttl_s: { type: 'integer', minimum: 1, maximum: URL_TTL_S_MAX, default: URL_TTL_S_DEFAULT },
      },
    },
  },
  answer: ref('RunUrls'),
  errors: [400, 404],
};
export const STOP_RUN: Operation = {
  operationId: 'stopRun',
  summary: 'Cancels a run, and shows nothing of what it has said',
  tags: RUNS,
  answer: ref('StoppedRun'),
  errors: [403, 404, 503],
};

export const LIST_TASKS: Operation = {
  operationId: 'listTasks',
  summary: 'Lists the tasks of the credential, the last one first',
  tags: TASKS,
  parameters: [
    query('status', 'Only those with this status.', { enum: TASK_STATUSES }),
    query('parent', 'Only those that are a part of this task.', name),
    LIMIT,
    AFTER,
  ],
  answer: ref('TaskList'),
  errors: [400, 503],
};
export const SHOW_TASK: Operation = {
  operationId: 'showTask',
  summary: 'Shows how far a task has come',
  tags: TASKS,
  answer: ref('Task'),
  errors: [400, 404, 503],
};
export const PUT_TASK: Operation = {
  operationId: 'putTask',
  summary: 'Says what a task is, and how far it may go, in place of what was said before',
  tags: TASKS,
  body: {
    required: true,
    schema: {
      type: 'object',
      additionalProperties: false,
      properties: {
        description: nullable({ ...text, maxLength: DESCRIPTION_CHARACTERS_MAX }),
        steps_total: nullable({ type: 'integer', minimum: 1, maximum: STEPS_TOTAL_MAX }),
        deadline_at: nullable({
          type: 'number',
          description: 'In seconds since the Unix epoch; within a year.',
        }),
        budget_tokens: nullable({ type: 'integer', minimum: 1, maximum: BUDGET_TOKENS_MAX }),
      },
    },
  },
  answer: ref('Task'),
  errors: [400, 410, 503],
};
/** A paged list of a task's steps, answers or calls. */
const listOfTask = (operationId: string, summary: string, answer: string): Operation => ({
  operationId,
  summary,
  tags: TASKS,
  parameters: [LIMIT, AFTER],
  answer: ref(answer),
  errors: [400, 404, 503],
});

export const LIST_STEPS = listOfTask(
  'listSteps',
  'Lists the steps of a task with their runs, in their order',
  'StepList',
);
export const SHOW_TRANSCRIPT = listOfTask(
  'showTranscript',
  'Lists what the steps of a task have said, in their order',
  'Transcript',
);
export const LIST_CALLS = listOfTask(
  'listCalls',
  'Lists the tool calls of a task with their results',
  'CallList',
);
export const STREAM_TASK: Operation = {
  operationId: 'streamTask',
  summary: 'Streams what happens in a task, until it ends',
  description:
    'Events: `task`, a Task, or a PurgedTask as the last one; `step`, a StepEvent; `call`, a CallEvent. Each has an `id`.',
  tags: TASKS,
  parameters: [query('after', 'The id of the last event that the client has.'), LAST_EVENT],
  answer: 'text/event-stream',
  errors: [400, 404, 503],
};
export const DELETE_TASK: Operation = {
  operationId: 'deleteTask',
  summary: 'Forgets a task, its runs, and the results of its tools',
  tags: TASKS,
  answer: ref('PurgedTask'),
  errors: [400, 404, 503],
};

const CHANGES = {
  pause: 'Has a task make no new steps until it is resumed',
  resume: 'Lets a paused task continue',
  complete: 'Ends a task, which is done',
  cancel: 'Ends a task, and its answers that are under way',
} as const;

export type Change = keyof typeof CHANGES;

const TTL_S = {
  type: 'integer',
  minimum: 1,
  maximum: TTL_S_MAX,
  description: 'How long the task is kept, if less than `checkpoint.ttl_s`. What ends it first says so.',
};
const isEnd = (verb: Change): boolean => verb === 'complete' || verb === 'cancel';

export const changeTask = (verb: Change): Operation => ({
  operationId: `${verb}Task`,
  summary: CHANGES[verb],
  tags: TASKS,
  body: {
    required: false,
    schema: { type: 'object', properties: { reason: name, ...(isEnd(verb) && { ttl_s: TTL_S }) } },
  },
  answer: ref('Task'),
  errors: [400, 404, 410, 503],
});

const CLAIM = { ...name, description: 'Random; names one attempt at the call.' };

export const CLAIM_CALL: Operation = {
  operationId: 'claimCall',
  summary: 'Asks whether a tool is to be run',
  tags: TASKS,
  body: {
    required: true,
    schema: {
      type: 'object',
      required: ['claim'],
      properties: {
        claim: CLAIM,
        hold_ms: { type: 'integer', minimum: 1, maximum: HOLD_MS_MAX, default: HOLD_MS_DEFAULT },
        repeat: { enum: ['never', 'with_key'], default: 'never' },
      },
    },
  },
  answer: ref('ClaimAnswer'),
  errors: [400, 404, 409, 503],
};
export const KEEP_RESULT: Operation = {
  operationId: 'keepResult',
  summary: 'Says that the tool has run, and what it has returned',
  tags: TASKS,
  body: {
    required: true,
    schema: { type: 'object', required: ['claim'], properties: { claim: CLAIM, result: {} } },
  },
  answer: ref('KeptResult'),
  errors: [400, 409, 413, 503],
};
export const RELEASE_CALL: Operation = {
  operationId: 'releaseCall',
  summary: 'Says that the tool has not run by this claim',
  tags: TASKS,
  body: { required: true, schema: { type: 'object', required: ['claim'], properties: { claim: CLAIM } } },
  answer: ref('Release'),
  errors: [400, 409, 503],
};
