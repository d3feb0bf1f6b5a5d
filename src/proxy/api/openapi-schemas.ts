import { FINAL_STATUSES } from '../../checkpoint/store.ts';
import { errorCodes } from '../../lib/errors.ts';
import { CALL_STATES } from '../tasks/call-ledger.ts';
import { WIRES } from '../wires/registry.ts';
import { RUN_STATES } from './run-documents.ts';
import { TASK_STATUSES } from './task-documents.ts';

/** A schema of OpenAPI 3.1, which is JSON Schema 2020-12. */
export type Schema = Readonly<Record<string, unknown>>;

export const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });

export const text = { type: 'string' };
export const count = { type: 'integer', minimum: 0 };
export const time = { type: 'integer', description: 'Seconds since the Unix epoch.' };

export const nullable = (schema: Schema): Schema => ({ anyOf: [schema, { type: 'null' }] });

/** An object whose fields are all required. Later versions may add fields. */
export const object = (properties: Readonly<Record<string, Schema>>, more: Schema = {}): Schema => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  ...more,
});

const list = (entry: Schema): Schema =>
  object({
    object: { const: 'list' },
    data: { type: 'array', items: entry },
    has_more: { type: 'boolean' },
    next: nullable({ ...text, description: 'The `after` of the next page.' }),
  });

const NAMED_CALL = object({ id: text, name: text });

const SUMMARY = {
  id: { ...text, pattern: '^run_' },
  object: { const: 'holdfast.run' },
  wire: nullable({ enum: Object.keys(WIRES) }),
  status: { enum: RUN_STATES },
  created_at: nullable(time),
  model: nullable(text),
  upstream: nullable(text),
  thread: nullable(text),
  task: nullable(text),
  step: nullable(count),
  step_name: nullable(text),
  continues: nullable(text),
  cursor: { ...count, description: 'How many events are stored.' },
  epoch: count,
  takeovers: count,
  holder: { enum: ['alive', 'lost', 'released'] },
  partial: { type: 'boolean' },
  end: nullable(object({ status: { enum: FINAL_STATUSES }, at: time, cause: nullable(text) })),
};

const SEGMENT = {
  attempt: nullable(count),
  epoch: count,
  upstream: nullable(text),
  model: nullable(text),
  mode: text,
  plan: nullable(text),
  cause: nullable(text),
  compressed: {},
  from: count,
  to: count,
  characters: { type: 'object', additionalProperties: count },
  discarded: { type: 'boolean' },
};

/** The fields of a segment that continues an interrupted one. */
const RECOVERY = {
  attempt: SEGMENT.attempt,
  upstream: SEGMENT.upstream,
  mode: SEGMENT.mode,
  plan: SEGMENT.plan,
  cause: SEGMENT.cause,
};

const STEP = {
  object: { const: 'holdfast.step' },
  number: { type: 'integer', minimum: 1 },
  run: nullable(ref('RunSummary')),
};

const CALL = { object: { const: 'holdfast.call' }, key: text, state: { enum: CALL_STATES } };

const TASK_SUMMARY = {
  id: text,
  object: { const: 'holdfast.task' },
  status: { enum: TASK_STATUSES },
  status_since: nullable(time),
  reason: nullable(text),
  expires_at: nullable({
    ...time,
    description: 'Until when a task that has ended is kept, if that is shorter than usual.',
  }),
  created_at: nullable(time),
  parent: nullable(text),
  description: nullable(text),
  deadline_at: nullable(time),
  budget_tokens: nullable(count),
  sessions: { ...count, description: 'How many processes have worked on it.' },
  steps: count,
  steps_total: nullable(count),
  last_step: nullable(ref('Step')),
  diverged: nullable(
    object(
      {
        step: STEP.number,
        by_step: STEP.number,
        changed: nullable({ type: 'array', items: text, description: 'Paths, as `messages[4]`.' }),
        at: time,
      },
      { description: 'That a process had another step than the one before it.' },
    ),
  ),
};

/** The named schemas that operations refer to. */
export const SCHEMAS: Readonly<Record<string, Schema>> = {
  Error: object({
    error: object({
      message: text,
      type: text,
      param: nullable({ ...text, description: 'The field or header at fault.' }),
      code: { enum: errorCodes() },
    }),
  }),
  RunSummary: object(SUMMARY),
  Run: object({
    ...SUMMARY,
    text,
    reasoning: text,
    tool_calls: { type: 'array', items: object({ id: text, name: text, arguments: text }) },
    unfinished_calls: { type: 'array', items: NAMED_CALL },
    parts: { type: 'array', items: object({ type: text }) },
    segments: { type: 'array', items: object(SEGMENT) },
    finish_reason: nullable(text),
  }),
  RunList: list(ref('RunSummary')),
  PurgedRun: object({ id: text, object: { const: 'holdfast.run' }, purged: { const: true } }),
  StoppedRun: object({ id: SUMMARY.id, object: SUMMARY.object, status: SUMMARY.status }),
  RunUrls: {
    type: 'object',
    description: 'Paths for what is allowed, under the public address of this API.',
    required: ['id', 'object', 'expires_at'],
    properties: {
      id: SUMMARY.id,
      object: { const: 'holdfast.urls' },
      read: { ...text, description: 'Of the stream, for GET.' },
      stop: { ...text, description: 'For POST.' },
      expires_at: time,
    },
  },
  TaskSummary: object(TASK_SUMMARY),
  Task: object({
    ...TASK_SUMMARY,
    usage: object({ prompt_tokens: count, completion_tokens: count, total_tokens: count }),
  }),
  TaskList: list(ref('TaskSummary')),
  PurgedTask: object({ id: text, object: { const: 'holdfast.task' }, purged: { const: true } }),
  Step: object(STEP),
  StepList: list(ref('Step')),
  StepEvent: object({
    ...STEP,
    recoveries: {
      type: 'array',
      items: object(RECOVERY),
      description: 'How often the answer was interrupted and continued.',
    },
  }),
  CallEvent: object(CALL),
  Transcript: list(
    object({
      object: { const: 'holdfast.answer' },
      number: STEP.number,
      run: nullable({ ...text, description: 'The id of the run.' }),
      input: nullable({
        type: 'array',
        items: {},
        description:
          'What the client has said since the answer before, in the messages or items of its request; `null` where that is not kept.',
      }),
      answer: nullable(ref('Run')),
    }),
  ),
  CallList: list({
    ...object(CALL),
    description: '`result`, any JSON value, is there where one was kept.',
  }),
  ClaimAnswer: {
    oneOf: [
      object({ outcome: { const: 'run' } }),
      object({ outcome: { const: 'done' } }),
      object({ outcome: { const: 'busy' }, retry_after_ms: { type: 'integer', minimum: 1 } }),
      object({ outcome: { const: 'unknown' }, claim: text, claimed_at_ms: { type: 'integer' } }),
    ],
  },
  KeptResult: object({ outcome: { const: 'done' } }),
  Release: object({ outcome: { const: 'released' } }),
};
