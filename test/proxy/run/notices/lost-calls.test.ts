import { describe, expect, test } from 'vitest';
import { MemoryStore } from '../../../../src/checkpoint/memory/store.ts';
import type { SettledCall } from '../../../../src/plans/tool-call.ts';
import {
  leaveLostCallNote,
  lostCallKey,
  lostCallNote,
  lostCallNoteText,
  lostCallText,
  notMadeAgain,
  runWithLostCall,
} from '../../../../src/proxy/run/notices/lost-calls.ts';
import type { AnsweredCall } from '../../../../src/proxy/wires/common/conversation.ts';
import { newRunId, OWNER, STRANGER } from '../../../checkpoint/fixtures.ts';
import { call, cancel, close, transcriptOf } from '../../../plans/saying.ts';
import { VirtualTime } from '../../../simulation/virtual-time.ts';

const PARIS: SettledCall = { id: 'call_a', name: 'forecast', arguments: '{"city":"Paris","days":2}' };
const BREST: SettledCall = { id: 'call_b', name: 'forecast', arguments: '{"city":"Brest"}' };
const LOST = transcriptOf(call(2, 'tides', '{"port"'), cancel(2)).toolCalls;

describe('a note about lost calls', () => {
  test('is left when there is a result to bring it back', () => {
    const run = newRunId();
    expect(lostCallNote(run, [PARIS], LOST)).toEqual({
      run,
      lost: ['tides'],
      unknown: [],
      delivered: [PARIS],
      answers: [],
    });
    expect(lostCallNote(run, [PARIS], [])).toBeUndefined();
    expect(lostCallNote(run, [], LOST)).toBeUndefined();
    // The legacy interface has no ids.
    expect(lostCallNote(run, [{ ...PARIS, id: '' }], LOST)).toBeUndefined();
  });

  test('is small whatever the model called', () => {
    const calls = Array.from({ length: 500 }, (_, index) => call(index, 'x'.repeat(5000))).flat();
    const note = lostCallNote(newRunId(), [PARIS], transcriptOf(calls).toolCalls);
    expect(JSON.stringify(note?.lost).length).toBeLessThan(2048);
  });

  async function left() {
    const { notes } = new MemoryStore({ time: new VirtualTime(), ttl_ms: 1000 });
    const run = newRunId();
    const note = lostCallNote(run, [PARIS, BREST], LOST, ['resp_shown', 'resp_finished']);
    if (!note) throw new Error('there is nothing to leave');
    await leaveLostCallNote(notes, OWNER, note, 1000);
    return { notes, run };
  }

  test.each<[string, readonly AnsweredCall[]]>([
    ['any of the calls', [BREST]],
    ['all of them', [PARIS, BREST]],
    ['one among others', [{ ...PARIS, id: 'call_z' }, PARIS]],
    ['a call that was written anew', [{ ...PARIS, arguments: '{ "days": 2, "city": "Paris" }' }]],
    ['a call of the answer by the name that its client has for it', [{ id: 'call_a', answer: 'resp_shown' }]],
    [
      'a call of the answer by the name that its provider has for it',
      [{ id: 'call_b', answer: 'resp_finished' }],
    ],
    ['a call that only its provider has', [{ id: 'call_a', answer: undefined }]],
  ])('is found by the result of %s', async (_, answered) => {
    const { notes, run } = await left();
    expect(await runWithLostCall(notes, OWNER, answered)).toBe(run);
    expect(await notes.get(OWNER, lostCallKey(run))).toBe('["tides"]');
  });

  test.each<[string, AnsweredCall]>([
    ['another call', { ...PARIS, id: 'call_c' }],
    ['another call that only its provider has', { id: 'call_c', answer: undefined }],
    ['a call of another answer that has the same id', { id: 'call_a', answer: 'resp_other' }],
    ['a call of another conversation that has the same id', { ...PARIS, arguments: '{"city":"Rome"}' }],
    ['a call of another tool that has the same id', { ...PARIS, name: 'tides' }],
  ])('is not found by the result of %s', async (_, answered) => {
    const { notes } = await left();
    expect(await runWithLostCall(notes, OWNER, [answered])).toBeUndefined();
  });

  test('is looked for by a few of many results', async () => {
    const { notes, run } = await left();
    const others = (count: number) =>
      Array.from({ length: count }, (_, index) => ({ ...PARIS, id: `${index}` }));
    expect(await runWithLostCall(notes, OWNER, [...others(15), PARIS])).toBe(run);
    expect(await runWithLostCall(notes, OWNER, [...others(16), PARIS])).toBeUndefined();
  });

  test('that names no answer is found by no request that does', async () => {
    const { notes } = new MemoryStore({ time: new VirtualTime(), ttl_ms: 1000 });
    const run = newRunId();
    const note = lostCallNote(run, [PARIS], LOST);
    if (note) await leaveLostCallNote(notes, OWNER, note, 1000);
    expect(await runWithLostCall(notes, OWNER, [{ id: PARIS.id, answer: 'resp_shown' }])).toBeUndefined();
    expect(await runWithLostCall(notes, OWNER, [PARIS])).toBe(run);
  });

  test('is not found by another owner', async () => {
    const { notes } = await left();
    expect(await runWithLostCall(notes, STRANGER, [PARIS])).toBeUndefined();
  });
});

describe('a call that was cut', () => {
  const { toolCalls } = transcriptOf(
    call(0, 'tides', '{'),
    cancel(0),
    call(1, 'tides', '{"port":'),
    cancel(1),
    call(2, 'tides', '{}'),
    close(2),
  );
  const [first, second, third] = toolCalls;

  test('is not lost when one of its name was made after it, each one for one', () => {
    if (!first || !second || !third) throw new Error('three calls were made');
    expect(notMadeAgain([first], [third])).toEqual([]);
    expect(notMadeAgain([first, second], [third])).toEqual([second]);
    expect(notMadeAgain([first], [{ ...third, name: 'forecast' }])).toEqual([first]);
    expect(notMadeAgain([third], [first])).toEqual([third]);
  });
});

test('the model is told in one short message which calls did not run', () => {
  expect(lostCallText(['tides'])).toBe(
    'My connection dropped while you made these calls: one more, to `tides`, was cut off and did not run. Make it again if it is still needed.',
  );
  expect(lostCallText(['tides', 'forecast'])).toBe(
    'My connection dropped while you made these calls: 2 more, to `tides`, `forecast`, were cut off and did not run. Make them again if they are still needed.',
  );
});

describe('a tool that the provider was running beside the calls', () => {
  test('is named with their results, as one that may have run', async () => {
    const { notes } = new MemoryStore({ time: new VirtualTime(), ttl_ms: 1000 });
    const run = newRunId();
    const note = lostCallNote(run, [PARIS], [], [], [{ name: 'create_ticket' }]);
    expect(note).toMatchObject({ lost: [], unknown: ['create_ticket'] });
    if (note) await leaveLostCallNote(notes, OWNER, note, 1000);
    expect(await runWithLostCall(notes, OWNER, [PARIS])).toBe(run);
    const value = await notes.get(OWNER, lostCallKey(run));
    expect(lostCallNoteText(value ?? '')).toBe(
      'My connection dropped while `create_ticket` ran on your side: it may have had its effect, and its result is not known. Look for the effect before you run it again.',
    );
  });

  test('is named after the calls that were cut', () => {
    const value = JSON.stringify({ lost: ['tides'], unknown: ['create_ticket'] });
    expect(lostCallNoteText(value)).toMatch(
      /to `tides`, was cut off .* while `create_ticket` ran on your side/,
    );
  });

  test('does not change the notice about calls alone', () => {
    expect(lostCallNoteText('["tides"]')).toBe(lostCallText(['tides']));
  });
});
