import type { Schema } from './schema-terms.ts';

export const METRICS_SCHEMA: Readonly<Record<string, Schema>> = {
  exemplars: {
    type: 'boolean',
    description:
      'Histograms of recoveries and first tokens tell the id of the last run of each bucket, to scrapers that take OpenMetrics.',
    default: true,
  },
  gen_ai: {
    type: 'boolean',
    description:
      'Attempts and runs are measured under the names of the OpenTelemetry conventions for generative AI as well: `gen_ai_…`.',
    default: false,
  },
};
