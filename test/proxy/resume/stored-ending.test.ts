import { describe, expect, test } from 'vitest';
import type { StoredRun } from '../../../src/checkpoint/store.ts';
import { withEnding } from '../../../src/proxy/resume/stored-ending.ts';
import { HEADER_RECORD } from '../../checkpoint/fixtures.ts';
import { RUN } from '../../simulation/simulate.ts';

/** A run of one settled call that was salvaged. `id`: of the call; the legacy interface has none. */
function salvaged(id: string): StoredRun {
  const payload = JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ delta: {} }] });
  const deltas = [
    { kind: 'tool_start', index: 0, id, name: 'f' },
    { kind: 'tool_arguments', index: 0, text: '{}' },
    { kind: 'tool_close', index: 0, proof: 1 },
  ] as const;
  return {
    status: 'recovered_from_partial',
    end: { status: 'recovered_from_partial', at_ms: 1 },
    epoch: 2,
    holder: { state: 'released' },
    takeovers: [1],
    seq: 1,
    records: [HEADER_RECORD, { seq: 1, events: [{ deltas, payload }] }],
  };
}

describe('settled calls are the answer of a run that was salvaged', () => {
  test.each([
    ['call_a', 'tool_calls'],
    ['', 'function_call'],
  ])('and a call with the id %j finishes it as %s', (id, reason) => {
    const { seq, records } = withEnding(RUN, salvaged(id));
    const [finish, done] = records.at(-1)?.events ?? [];

    expect(seq).toBe(3);
    expect(JSON.parse(finish?.payload ?? '').choices[0].finish_reason).toBe(reason);
    expect(done?.payload).toBe('[DONE]');
  });
});
