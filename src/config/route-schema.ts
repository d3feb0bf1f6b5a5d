import { COMPRESSION_SCHEMA } from './compression-schema.ts';
import type { Schema } from './schema-terms.ts';

export const ROUTE_SCHEMA: Schema = {
  type: 'object',
  description: 'Where requests for a model go.',
  additionalProperties: false,
  required: ['model', 'targets'],
  properties: {
    model: {
      type: 'string',
      description: 'The model name a client asks for; `*` stands for any characters.',
      examples: ['gpt-*'],
      minLength: 1,
    },
    targets: {
      type: 'array',
      description: 'Upstreams in order of preference.',
      minItems: 1,
      items: {
        type: 'object',
        description: 'One upstream.',
        additionalProperties: false,
        required: ['upstream'],
        properties: {
          upstream: { type: 'string', description: 'Its name under `upstreams`.', minLength: 1 },
          model: {
            type: 'string',
            description: "The model name to ask it for, when it differs from the client's.",
            minLength: 1,
          },
          context_tokens: {
            type: 'integer',
            description:
              'How many tokens the model takes, prompt and answer together. A request that was too long for one target is sent to one with more, if both say how many.',
            minimum: 1,
            maximum: 1_000_000_000,
          },
        },
      },
    },
    non_streaming: {
      type: 'string',
      description:
        'Requests without `stream`. `recover`: fetched as a stream, recovered like one, and answered with one document. `pass_through`: handed to the first target as they come.',
      default: 'recover',
      enum: ['recover', 'pass_through'],
    },
    compression: COMPRESSION_SCHEMA,
  },
};
