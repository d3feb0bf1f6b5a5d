import { milliseconds, type Schema } from './schema-terms.ts';

/** The keys of `clocks`, which upstreams can override. */
export const CLOCKS_SCHEMA: Readonly<Record<string, Schema>> = {
  connect_ms: milliseconds(10_000, 'Limit on DNS, TCP and TLS together.'),
  first_byte_ms: milliseconds(120_000, 'Limit on the wait for the first byte of the response.'),
  first_token_ms: milliseconds(120_000, 'Limit on the wait for the first token.'),
  idle_ms: milliseconds(90_000, 'Limit on silence: no bytes at all.'),
  progress_ms: milliseconds(300_000, 'Limit on bytes without progress: only pings and comments.'),
  progress_reasoning_ms: milliseconds(
    600_000,
    'The same while the model is reasoning, which providers often do unseen.',
  ),
  attempt_ms: milliseconds(1_800_000, 'Limit on one attempt as a whole.'),
};
