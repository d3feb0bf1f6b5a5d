import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { takesMoreThan } from '../../src/plans/request-share.ts';
import { estimatedPromptTokens, type PromptSize } from '../../src/plans/tokens.ts';
import { CASES, seedOr } from '../cases.ts';

const SEED = seedOr(20_261_128);
const RUNS = { seed: SEED, numRuns: CASES };

const sizeOf = (
  message_characters: readonly number[],
  tool_characters = 0,
  media_tokens = 0,
): PromptSize => ({ message_characters, tool_characters, media_tokens });

describe('a request takes more than it may', () => {
  const cases: [string, number, number, PromptSize, boolean][] = [
    ['not while it is smaller', 1000, 3000, sizeOf([2000]), false],
    ['not where it is just as large', 503, 4000, sizeOf([2000]), false],
    ['where it is larger by a token', 502, 4000, sizeOf([2000]), true],
    ['with its tools', 502, 4000, sizeOf([1000], 1000), true],
    ['with its pictures', 502, 40_000, sizeOf([100], 0, 765), true],
    ['not for what a picture weighs in base64', 1000, 400_000, sizeOf([100], 0, 765), false],
    ['not for pictures that stand elsewhere', 1000, 2000, sizeOf([100], 0, 7650), false],
  ];
  it.each(cases)('%s', (_, tokens_max, characters, size, expected) => {
    expect(takesMoreThan(tokens_max, characters, () => size)).toBe(expected);
  });

  it('only where it was measured, and it is measured only where it could', () => {
    const measured = (): PromptSize => expect.fail('it was measured');
    expect(takesMoreThan(1000, 4000, measured)).toBe(false);
    expect(() => takesMoreThan(1000, 4001, measured)).toThrow('it was measured');
  });

  it(`exactly where the estimate says so, whatever is in it (${RUNS.numRuns} cases, seed ${SEED})`, () => {
    const size = fc.record({
      message_characters: fc.array(fc.nat(5000), { maxLength: 30 }),
      tool_characters: fc.nat(20_000),
      media_tokens: fc.constant(0),
    });
    fc.assert(
      fc.property(size, fc.double({ min: 1, max: 60_000, noNaN: true }), fc.nat(500), (said, max, more) => {
        // As sent: the JSON around each message has more characters than the estimate adds tokens for it.
        const text = [...said.message_characters, said.tool_characters].reduce((sum, each) => sum + each, 0);
        const sent = text + 20 * (said.message_characters.length + 1) + more;
        const estimated = estimatedPromptTokens(said);
        expect(takesMoreThan(max, sent, () => said)).toBe(estimated > max);
        // A request that exceeds a limit also exceeds half of it.
        if (takesMoreThan(2 * max, sent, () => said)) expect(takesMoreThan(max, sent, () => said)).toBe(true);
      }),
      RUNS,
    );
  });
});
