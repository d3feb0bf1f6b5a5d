import { milliseconds, type Schema } from './schema-terms.ts';

export const BREAKER_SCHEMA: Readonly<Record<string, Schema>> = {
  failures: {
    type: 'integer',
    description: 'Attempts in a row that failed before they said anything.',
    default: 5,
    minimum: 1,
    maximum: 1000,
  },
  failure_percent: {
    type: 'integer',
    description:
      'Or this share of the last `window` attempts, those that broke off later among them. Percent.',
    default: 50,
    minimum: 1,
    maximum: 100,
  },
  window: {
    type: 'integer',
    description: 'How many attempts `failure_percent` is a share of. With fewer it says nothing.',
    default: 20,
    minimum: 1,
    maximum: 1000,
  },
  open_ms: milliseconds(
    5000,
    'How long the target is left alone then. After that one request at a time finds out whether it works again; doubles each time it does not.',
  ),
  open_max_ms: milliseconds(
    20_000,
    'Cap of that, and the time after which a request that finds out, and was not answered yet, is followed by another.',
  ),
};
