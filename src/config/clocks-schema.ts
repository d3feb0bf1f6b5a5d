import { milliseconds, type Schema, withoutDefault } from './schema-terms.ts';

/** How long is waited for a silent target depends on whether another one can take its place, where nothing is set. */
const waiting = (description: string, alone_ms: number): Schema =>
  withoutDefault(
    milliseconds(
      alone_ms,
      `${description} By default ${alone_ms}; 30000 where the route has another target to ask, unless the model is known to think; without \`stream\`, and without such a target, \`progress_reasoning_ms\`.`,
    ),
  );

/** The keys of `clocks`, which upstreams can override. */
export const CLOCKS_SCHEMA: Readonly<Record<string, Schema>> = {
  connect_ms: milliseconds(10_000, 'Limit on DNS, TCP and TLS together.'),
  first_byte_ms: waiting('Limit on the wait for the first byte of the response.', 120_000),
  first_token_ms: waiting('Limit on the wait for the first token.', 120_000),
  idle_ms: waiting('Limit on silence: no bytes at all.', 90_000),
  progress_ms: milliseconds(300_000, 'Limit on bytes without progress: only pings and comments.'),
  progress_reasoning_ms: milliseconds(
    600_000,
    'The same while the model is reasoning, which providers often do unseen.',
  ),
  attempt_ms: milliseconds(1_800_000, 'Limit on one attempt as a whole.'),
};
