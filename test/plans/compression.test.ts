import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Middle, middleOf, type Part } from '../../src/plans/compression.ts';
import { CASES, seedOr } from '../cases.ts';

const SEED = seedOr(20_261_122);
const RUNS = { seed: SEED, numRuns: CASES };

const part = (kind: Part['kind'], calls: readonly string[] = [], results: readonly string[] = []): Part => ({
  kind,
  calls,
  results,
});
const system = part('pinned');
const user = part('user');
const model = part('model');
const calls = (...ids: string[]) => part('model', ids);
const results = (...ids: string[]) => part('result', [], ids);
const chat = (turns: number) => Array.from({ length: turns }, () => [user, model]).flat();

describe('what is left out', () => {
  const cases: [string, readonly Part[], number, Middle | undefined][] = [
    ['nothing of a short conversation', [system, user], 8, undefined],
    ['nothing where all is to stay', chat(4), 8, undefined],
    ['nothing of instructions', [system, system, system, user], 1, undefined],
    [
      'the beginning of a long one, up to a turn of the model',
      [system, ...chat(4), user],
      3,
      { left_out: [1, 2, 3, 4, 5], joined_to: undefined },
    ],
    [
      'less of it where more is to stay',
      [system, ...chat(4), user],
      5,
      { left_out: [1, 2, 3], joined_to: undefined },
    ],
    [
      'no instructions in its midst',
      [user, model, system, user, model, user, model, user],
      2,
      { left_out: [0, 1, 3, 4, 5], joined_to: undefined },
    ],
    [
      'no call without its results',
      [user, model, user, calls('a', 'b'), results('a'), results('b'), model, user],
      3,
      { left_out: [0, 1, 2], joined_to: undefined },
    ],
    [
      'calls with their results',
      [user, calls('a', 'b'), results('a'), results('b'), model, user],
      2,
      { left_out: [0, 1, 2, 3], joined_to: undefined },
    ],
    [
      'what the task has come to so far, but not the task',
      [system, user, calls('a'), results('a'), calls('b'), results('b'), calls('c'), results('c')],
      2,
      { left_out: [2, 3, 4, 5], joined_to: 1 },
    ],
    [
      'what came before the task as well',
      [user, model, user, calls('a'), results('a'), calls('b'), results('b')],
      2,
      { left_out: [0, 1, 3, 4], joined_to: 2 },
    ],
    [
      'only what stands before a task with results in it, and their calls',
      [user, calls('a'), part('user', [], ['a']), calls('b'), results('b'), model],
      1,
      { left_out: [0], joined_to: undefined },
    ],
    [
      'the call and result before, where an id is used again',
      [user, calls('a'), results('a'), user, calls('a'), results('a'), user],
      3,
      { left_out: [0, 1, 2, 3], joined_to: undefined },
    ],
    [
      'no part of a turn',
      [user, model, user, model, calls('a'), model, results('a'), user],
      4,
      { left_out: [0, 1, 2], joined_to: undefined },
    ],
    [
      'what the user says, where the model has said nothing',
      [system, user, user, user],
      2,
      { left_out: [1], joined_to: undefined },
    ],
    ['results of nothing', [results('x'), model, user], 2, { left_out: [0], joined_to: undefined }],
    ['a conversation of the model with itself', [model, model, model], 1, undefined],
    ['nothing of nothing', [], 1, undefined],
  ];
  it.each(cases)('is %s', (_, parts, keep, middle) => {
    expect(middleOf(parts, keep)).toEqual(middle);
  });

  it('is found in time, however long the conversation', () => {
    const length = 200_000;
    // Every result refers to the first call, so the conversation can be split only at its beginning.
    const parts = [user, calls('a'), ...Array.from({ length }, () => results('a'))];
    expect(middleOf(parts, 8)).toBeUndefined();
  });
});

/** Any conversation, including unlikely ones. */
const anyPart: fc.Arbitrary<Part> = fc
  .record({
    kind: fc.constantFrom<Part['kind']>('pinned', 'user', 'model', 'model', 'result', 'result'),
    ids: fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { maxLength: 3 }),
  })
  .map(({ kind, ids }) => ({
    kind,
    calls: kind === 'model' ? ids : [],
    results: kind === 'result' || (kind === 'user' && ids.length === 3) ? ids : [],
  }));

/** A conversation whose calls are all answered immediately. */
const wellFormed: fc.Arbitrary<readonly Part[]> = fc
  .array(fc.oneof(fc.constantFrom(user, system, model), fc.integer({ min: 1, max: 3 })), { maxLength: 40 })
  .map((turns) => {
    let next = 0;
    return turns.flatMap((turn) => {
      if (typeof turn !== 'number') return [turn];
      const ids = Array.from({ length: turn }, () => `call_${next++}`);
      return [calls(...ids), ...ids.map((id) => results(id))];
    });
  });

/** Pairs of a call and its result, as indices. */
function pairs(parts: readonly Part[]): (readonly [number, number])[] {
  return parts.flatMap(({ results: ids }, index) =>
    ids.flatMap((id) => {
      const call = parts.findLastIndex((made, position) => position <= index && made.calls.includes(id));
      return call === -1 ? [] : [[call, index] as const];
    }),
  );
}

describe('any conversation', () => {
  it.each([
    ['whatever it is', fc.array(anyPart, { maxLength: 40 })],
    ['as applications have them', wellFormed],
  ] as const)(`%s (${RUNS.numRuns} cases, seed ${SEED})`, (_, conversations) => {
    fc.assert(
      fc.property(conversations, fc.integer({ min: 1, max: 12 }), (parts, keep) => {
        const middle = middleOf(parts, keep);
        if (!middle) return;
        const { left_out, joined_to } = middle;
        const isLeftOut = (index: number) => left_out.includes(index);
        expect(left_out.length).toBeGreaterThan(0);
        expect(left_out).toEqual([...new Set(left_out)].toSorted((one, other) => one - other));
        // The end, instructions and the user's last message stay.
        for (const index of left_out) expect(index).toBeLessThan(parts.length - keep);
        for (const [index, { kind }] of parts.entries())
          if (kind === 'pinned') expect(isLeftOut(index)).toBe(false);
        const last = parts.findLastIndex(({ kind }) => kind === 'user');
        expect(isLeftOut(last)).toBe(false);
        // No call loses its results, and no result its call.
        for (const [call, result] of pairs(parts)) expect(isLeftOut(call)).toBe(isLeftOut(result));
        // The message that the summary is joined to stays, and is the user's last one.
        if (joined_to !== undefined) expect(joined_to).toBe(last);
        // If possible, a summary of its own isn't followed directly by a user message.
        const end = Math.max(...left_out) + 1;
        const isTurn = parts[end]?.kind === 'model' && parts[end - 1]?.kind !== 'model';
        const couldBe = parts.slice(0, end).some(({ kind }, index) => kind === 'model' && index > 0);
        if (joined_to === undefined && parts[end]?.kind === 'user' && couldBe) expect(isTurn).toBe(false);
      }),
      RUNS,
    );
  });
});
