import { expect, test } from 'vitest';
import { CAUSES, isPermanent } from '../../src/interrupts/interruption.ts';

test('only what has nothing to do with the request may pass', () => {
  expect(CAUSES.filter((cause) => !isPermanent(cause))).toEqual([
    'connection_reset',
    'idle_stall',
    'goaway',
    'provider_5xx',
    'rate_limited',
  ]);
});
