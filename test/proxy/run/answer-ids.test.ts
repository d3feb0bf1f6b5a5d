import { describe, expect, test } from 'vitest';
import { MemoryStore } from '../../../src/checkpoint/memory/store.ts';
import type { Notes } from '../../../src/checkpoint/notes.ts';
import type { JsonBody } from '../../../src/lib/json-body.ts';
import { AnswerIds, leaveAnswerId } from '../../../src/proxy/run/answer-ids.ts';
import type { RunState } from '../../../src/proxy/run/run-state.ts';
import { WIRES } from '../../../src/proxy/wires/registry.ts';
import { DEFAULTS, OWNER, RUN, SILENT_LOG } from '../../simulation/simulate.ts';
import { VirtualTime } from '../../simulation/virtual-time.ts';

const bodyOf = (fields: object): JsonBody => ({ text: JSON.stringify(fields), fields: { ...fields } });
const PREVIOUS = bodyOf({ model: 'm', previous_response_id: 'resp_1' });

function situation(notes?: Partial<Notes>) {
  const time = new VirtualTime();
  const memory = new MemoryStore({ time, ttl_ms: 1000 });
  const store = notes
    ? ({ ...memory, notes: { ...memory.notes, ...notes } } as unknown as MemoryStore)
    : memory;
  const context = { store, time, log: SILENT_LOG, configuration: DEFAULTS };
  const ids = new AnswerIds(context);
  const inPlace = (body: JsonBody, wire = WIRES.responses, owner = OWNER) =>
    time.drive(ids.inPlace(wire, body, () => owner));
  /** Notes that an answer began as `resp_1` and ended as `finished`. */
  const leave = (
    finished: string | undefined,
    wire = WIRES.responses,
    signal = new AbortController().signal,
  ) => {
    const turn = { run: { id: RUN, owner: OWNER, wire }, output: { stream_id: 'resp_1' }, signal };
    return time.drive(leaveAnswerId(turn as unknown as RunState, finished, context));
  };
  return { inPlace, leave };
}

describe('the answer that a request continues from', () => {
  test('is named as its provider knows it', async () => {
    const { inPlace, leave } = situation();
    await leave('resp_2');
    const { text, fields } = await inPlace(PREVIOUS);
    expect(fields).toEqual({ model: 'm', previous_response_id: 'resp_2' });
    expect(JSON.parse(text)).toEqual(fields);
  });

  test.each([
    ['of another owner', PREVIOUS, WIRES.responses, 'other' as typeof OWNER],
    ['on a wire that has none', PREVIOUS, WIRES.chat_completions, OWNER],
    ['that is unknown', bodyOf({ previous_response_id: 'resp_3' }), WIRES.responses, OWNER],
    ['that is none', bodyOf({ previous_response_id: null }), WIRES.responses, OWNER],
  ])('stays as it is: %s', async (_, body, wire, owner) => {
    const { inPlace, leave } = situation();
    await leave('resp_2');
    expect(await inPlace(body, wire, owner)).toBe(body);
  });

  test.each<[string, string | undefined]>([
    ['it ended as what it was begun as', 'resp_1'],
    ['its outcome is unknown', undefined],
  ])('stays as it is: %s', async (_, finished) => {
    const { inPlace, leave } = situation();
    await leave(finished);
    expect(await inPlace(PREVIOUS)).toBe(PREVIOUS);
  });

  test('is left to the replica that has taken the run over', async () => {
    const { inPlace, leave } = situation();
    await leave('resp_2', WIRES.responses, AbortSignal.abort());
    expect(await inPlace(PREVIOUS)).toBe(PREVIOUS);
  });
});

describe('a store', () => {
  test.each<[string, Partial<Notes>]>([
    [
      'that fails',
      { get: () => Promise.reject(new Error('away')), put: () => Promise.reject(new Error('away')) },
    ],
    ['that does not answer', { get: () => new Promise(() => {}), put: () => new Promise(() => {}) }],
  ])('%s keeps no request and no answer', async (_, notes) => {
    const { inPlace, leave } = situation(notes);
    await leave('resp_2');
    expect(await inPlace(PREVIOUS)).toBe(PREVIOUS);
    expect(await inPlace(PREVIOUS)).toBe(PREVIOUS);
  });
});
