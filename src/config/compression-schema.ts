import type { Schema } from './schema-terms.ts';

export const COMPRESSION_SCHEMA: Schema = {
  type: 'object',
  description:
    'Has the middle of a conversation that is too long for all targets summarised by a model, and goes on with the summary in its place. Not on `/v1/completions`.',
  additionalProperties: false,
  required: ['upstream', 'model'],
  properties: {
    upstream: {
      type: 'string',
      description:
        'Turns it on that the middle of conversations which are too long for all targets is summarised: who is asked for that, by chat completions. A name under `upstreams`. See docs/recovery.md.',
      minLength: 1,
    },
    model: { type: 'string', description: 'The model that summarises.', minLength: 1 },
    keep_messages: {
      type: 'integer',
      description: 'At least so many of the last messages, or items, stay as they are.',
      default: 8,
      minimum: 1,
      maximum: 1_000_000,
    },
    summary_tokens: {
      type: 'integer',
      description: 'How long the summary may be.',
      default: 1024,
      minimum: 64,
      maximum: 1_000_000,
    },
    context_tokens: {
      type: 'integer',
      description:
        'How many tokens the model that summarises takes, prompt and summary together. What is longer is summarised in several requests, one after the other.',
      minimum: 1024,
      maximum: 1_000_000_000,
    },
  },
};
