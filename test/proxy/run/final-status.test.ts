import { describe, expect, test } from 'vitest';
import { CLOCKS, type Interruption } from '../../../src/interrupts/interruption.ts';
import { finalStatus } from '../../../src/proxy/run/end.ts';
import { call, reasoning, refusal, text, transcriptOf } from '../../plans/saying.ts';

const stalled = (clock: (typeof CLOCKS)[number]): Interruption => ({
  cause: 'idle_stall',
  phase: 'text',
  evidence: { kind: 'clock', clock },
});
const reset: Interruption = {
  cause: 'connection_reset',
  phase: 'text',
  evidence: { kind: 'transport', code: 'ECONNRESET' },
};

describe('a run that was given up is stored as', () => {
  test.each(CLOCKS)('a timed-out partial when the %s clock ran out on it', (clock) => {
    expect(finalStatus(stalled(clock), transcriptOf(text('Kelp')))).toBe('timeout_partial');
  });

  test.each([
    ['text', text('Kelp')],
    ['a refusal', refusal('I')],
    ['reasoning', reasoning('hm')],
  ])('a partial when there was %s', (_, delta) => {
    expect(finalStatus(stalled('idle'), transcriptOf(delta))).toBe('timeout_partial');
  });

  test('failed when nothing was delivered', () => {
    expect(finalStatus(stalled('first_token'), transcriptOf())).toBe('failed');
    expect(finalStatus(stalled('idle'), transcriptOf(call(0, 'now', '{')))).toBe('failed');
  });

  test('failed when it was no clock of ours', () => {
    expect(finalStatus(reset, transcriptOf(text('Kelp')))).toBe('failed');
  });
});
