import { text } from './schema-terms.ts';

/** All event types, as in the `type` of their payloads. */
export const WEBHOOK_EVENTS = [
  'task.paused',
  'task.resumed',
  'task.completed',
  'task.cancelled',
  'task.deadline_passed',
  'task.budget_spent',
  'task.step_failed',
  'task.call_unknown',
] as const;
export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number];

const ENDPOINTS_MAX = 16;

export const WEBHOOKS_SCHEMA = {
  type: 'array',
  description:
    'Endpoints that get a request when something happens to a task, signed as the Standard Webhooks specification says. See docs/webhooks.md.',
  default: [],
  maxItems: ENDPOINTS_MAX,
  items: {
    type: 'object',
    description: 'An endpoint, with `secret` or `secret_file`.',
    additionalProperties: false,
    required: ['url'],
    properties: {
      url: {
        type: 'string',
        description:
          "Where to send its requests. Only `http:` and `https:`; Holdfast doesn't follow redirects.",
        examples: ['https://hooks.example.com/holdfast'],
        minLength: 1,
      },
      secret: {
        type: 'string',
        description:
          'Signs its requests: `whsec_`, and 24 to 64 random bytes in base64. Give each endpoint its own. Never printed.',
        examples: [`\${WEBHOOK_SECRET}`],
        minLength: 1,
      },
      secret_file: text('A file with the secret, instead of `secret`. A replica reads it when it starts.'),
      events: {
        type: 'array',
        description: 'The events to send. By default all.',
        default: WEBHOOK_EVENTS,
        minItems: 1,
        uniqueItems: true,
        items: {
          type: 'string',
          description: 'The `type` of an event.',
          enum: WEBHOOK_EVENTS,
        },
      },
    },
  },
} as const;
