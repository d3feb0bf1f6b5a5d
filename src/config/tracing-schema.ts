import type { Schema } from './schema-terms.ts';

/** Without defaults: what is left out is looked for in the standard `OTEL_*` variables. */
export const TRACING_SCHEMA: Readonly<Record<string, Schema>> = {
  endpoint: {
    type: 'string',
    description:
      'Base URL of an OTLP receiver that takes HTTP; `/v1/traces` is added to it. Without it, that of `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT`; without those, nothing is traced.',
    examples: ['http://collector:4318'],
    minLength: 1,
  },
  headers: {
    type: 'object',
    description: 'Headers that are sent to the receiver, by name.',
    propertyNames: { pattern: '^[A-Za-z][A-Za-z0-9_-]{0,62}$' },
    additionalProperties: {
      type: 'string',
      description: 'A header that is sent to the receiver. Never printed.',
      minLength: 1,
    },
  },
  sample_ratio: {
    type: 'number',
    description:
      'The share of runs that is traced, of those whose client does not say in its `traceparent` whether it wants them traced. Without it, what `OTEL_TRACES_SAMPLER` says; without that, all.',
    minimum: 0,
    maximum: 1,
  },
  service_name: {
    type: 'string',
    description:
      'The name of the service in traces. Without it, that of `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES`, else `holdfast`.',
    minLength: 1,
  },
};
