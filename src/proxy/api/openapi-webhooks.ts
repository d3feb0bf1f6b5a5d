import type { WebhookEvent } from '../../config/webhook-schema.ts';
import { count, nullable, object, type Schema, text, time } from './openapi-schemas.ts';

/** The summary and payload of an event, without its task and client. */
interface DescribedEvent {
  readonly summary: string;
  readonly data: Readonly<Record<string, Schema>>;
}

const REASON = { reason: nullable({ ...text, description: 'As the owner of the task has put it.' }) };

const EVENTS: Readonly<Record<WebhookEvent, DescribedEvent>> = {
  'task.paused': { summary: 'A task has no new steps until it is resumed', data: REASON },
  'task.resumed': { summary: 'A task that was paused has new steps again', data: REASON },
  'task.completed': { summary: 'A task has no new steps any more', data: REASON },
  'task.cancelled': { summary: 'The same, and its answers under way were cancelled', data: REASON },
  'task.deadline_passed': {
    summary: 'A request of a task was refused, because its deadline has passed',
    data: { deadline_at: time },
  },
  'task.budget_spent': {
    summary: 'A request of a task was refused, because its budget is spent',
    data: { budget_tokens: count },
  },
  'task.step_failed': {
    summary: 'The run of a step has ended without a whole answer',
    data: {
      step: { type: 'integer', minimum: 1 },
      step_name: nullable(text),
      run: { ...text, pattern: '^run_' },
      attempts: nullable({ ...count, description: 'Requests made to providers.' }),
      exhausted: { type: 'boolean', description: 'Recovery had no attempts or no time left.' },
      error: object({
        cause: nullable({ ...text, description: 'As in the `end` of the run.' }),
        status: nullable({ type: 'integer', description: 'That of the provider.' }),
      }),
    },
  },
  'task.call_unknown': {
    summary: 'A tool call was claimed again after an earlier claim lapsed without a result',
    data: { call: object({ key: text, claim: text, claimed_at: time }) },
  },
};

const header = (name: string, description: string) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema: text,
});

const HEADERS = [
  header('webhook-id', 'The same whenever an event is sent again, by whichever replica.'),
  header('webhook-timestamp', 'When it was sent, in seconds since the Unix epoch.'),
  header('webhook-signature', '`v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64.'),
];

/** `task.step_failed`: `onTaskStepFailed` */
const operationId = (type: string): string =>
  `on${type.replace(/(?:^|[._])(\w)/g, (_, letter: string) => letter.toUpperCase())}`;

/** The webhook requests as OpenAPI describes them, by event type. */
export const WEBHOOKS = Object.fromEntries(
  Object.entries(EVENTS).map(([type, { summary, data }]) => {
    const schema = object({
      type: { const: type },
      timestamp: { type: 'string', format: 'date-time', description: 'When it happened.' },
      data: object({
        task: text,
        client: nullable({ ...text, description: 'The client of the configuration that owns the task.' }),
        ...data,
      }),
    });
    const post = {
      operationId: operationId(type),
      summary,
      tags: ['tasks'],
      security: [],
      parameters: HEADERS,
      requestBody: { required: true, content: { 'application/json': { schema } } },
      responses: {
        '2XX': { description: 'It is delivered.' },
        default: {
          description: 'It is sent again after a 408, a 429 and a 5xx, and not after any other status.',
        },
      },
    };
    return [type, { post }];
  }),
);
