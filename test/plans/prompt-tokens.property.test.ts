import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nudgeText } from '../../src/plans/continuation.ts';
import { type AttemptUsage, type Count, estimatedPromptTokens } from '../../src/plans/tokens.ts';
import { promptTokens } from '../../src/plans/usage-ledger.ts';
import { promptSize } from '../../src/proxy/wires/common/prompt-size.ts';
import { CASES, seedOr } from '../cases.ts';

const SEED = seedOr(Date.now() % 2 ** 31);

/** How a provider counts: its tokenizer's pieces of a text, and the tokens that its template adds to a turn. */
interface Manner {
  pieces(text: string): string[];
  readonly turn_tokens: number;
  /** How many tokens of the answer arrive per delta. */
  readonly tokens_per_delta: number;
}

const slices = (text: string, size: number): string[] =>
  Array.from({ length: Math.ceil(text.length / size) }, (_, at) => text.slice(at * size, (at + 1) * size));
const words = (text: string): string[] => text.match(/ ?\w+|[^\w\s]|\s/gu) ?? [];

const MANNERS: Readonly<Record<string, Manner>> = {
  'four characters to a token': { pieces: (text) => slices(text, 4), turn_tokens: 3, tokens_per_delta: 1 },
  'five characters to a token': { pieces: (text) => slices(text, 5), turn_tokens: 4, tokens_per_delta: 1 },
  'three characters to a token': { pieces: (text) => slices(text, 3), turn_tokens: 5, tokens_per_delta: 1 },
  'words and signs': { pieces: words, turn_tokens: 3, tokens_per_delta: 1 },
  'halves of long words': {
    pieces: (text) => words(text).flatMap((word) => slices(word, 6)),
    turn_tokens: 4,
    tokens_per_delta: 1,
  },
  'several tokens to a delta': { pieces: words, turn_tokens: 3, tokens_per_delta: 7 },
};

const VOCABULARY =
  'the tide comes in twice a day and holdfasts grip what is left of rock between storms'.split(' ');
const prose = (min: number, max: number) =>
  fc
    .array(fc.constantFrom(...VOCABULARY), { minLength: min, maxLength: max })
    .map((chosen) => `${chosen.join(' ')}.`);
const tool = fc
  .record({ name: fc.constantFrom('tides', 'harbours'), description: prose(5, 30) })
  .map((named) => ({
    type: 'function',
    function: { ...named, parameters: { type: 'object', properties: { city: { type: 'string' } } } },
  }));

const countOf = ({ pieces, tokens_per_delta }: Manner, text: string): Count => ({
  deltas: Math.ceil(pieces(text).length / tokens_per_delta),
  characters: text.length,
});

const attempt = (mode: AttemptUsage['mode'], changes: Partial<AttemptUsage>): AttemptUsage => {
  const none = { deltas: 0, characters: 0 };
  return { mode, text: none, reasoning: none, tools: none, swallowed: none, added_messages: [], ...changes };
};

/** The largest error allowed for prompts so small that it exceeds 2 %. */
const SMALL_ERROR_TOKENS = 15;

const askedFor = (messages: fc.Arbitrary<string[]>, tools: number) =>
  fc.record({
    messages,
    tools: fc.array(tool, { maxLength: tools }),
    shown: prose(4, 300),
    rest: prose(4, 60),
    mode: fc.constantFrom('prefill' as const, 'nudge' as const),
  });
type Asked = typeof askedAtLength extends fc.Arbitrary<infer Value> ? Value : never;
const askedAtLength = askedFor(fc.array(prose(100, 300), { minLength: 5, maxLength: 12 }), 6);
const askedBriefly = askedFor(fc.array(prose(4, 20), { minLength: 1, maxLength: 3 }), 0);

describe.each(Object.entries(MANNERS))('a provider that counts %s', (_, manner) => {
  const tokens = (text: string) => manner.pieces(text).length;

  /** The error of the estimate, and the true number of tokens. */
  function offBy({ messages, tools, shown, rest, mode }: Asked): { off: number; own: number } {
    const own =
      messages.reduce((sum, message) => sum + manner.turn_tokens + tokens(message), 0) +
      (tools.length > 0 ? tokens(JSON.stringify(tools)) : 0);
    const nudge = nudgeText({ delivered: shown, hasTools: tools.length > 0, cutTools: [], insists: false });
    const isNudge = mode === 'nudge';
    const added = tokens(shown) + (isNudge ? tokens(nudge) + 2 * manner.turn_tokens : 0);
    const completion_tokens = tokens(rest);
    const attempts = [
      attempt('first', { text: countOf(manner, shown) }),
      attempt(mode, {
        reported: {
          prompt_tokens: own + added,
          completion_tokens,
          total_tokens: own + added + completion_tokens,
        },
        text: countOf(manner, rest),
        added_messages: isNudge ? [shown.length, nudge.length] : [shown.length],
      }),
    ];
    const size = promptSize(messages, tools.length > 0 ? tools : undefined);
    const found = promptTokens(attempts, size);
    expect(found).toBeGreaterThan(0);
    expect(found).toBeLessThanOrEqual(own + added);
    return { off: Math.abs(found - own), own };
  }

  test(`is distinguished from what was added to its prompt, within 2 % (seed ${SEED})`, () => {
    fc.assert(
      fc.property(askedAtLength, (each) => {
        const { off, own } = offBy(each);
        expect(off / own).toBeLessThanOrEqual(0.02);
      }),
      { seed: SEED, numRuns: CASES },
    );
  });

  test(`is so, within a few tokens, of a small prompt (seed ${SEED})`, () => {
    fc.assert(
      fc.property(askedBriefly, (each) => {
        const { off, own } = offBy(each);
        expect(off).toBeLessThanOrEqual(Math.max(0.02 * own, SMALL_ERROR_TOKENS));
      }),
      { seed: SEED, numRuns: CASES },
    );
  });

  test(`is believed where an attempt asked for nothing but what its client had (seed ${SEED})`, () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e6 }), fc.integer({ min: 0, max: 3 }), (own, place) => {
        const reported = (prompt_tokens: number) => ({
          reported: { prompt_tokens, completion_tokens: 1, total_tokens: prompt_tokens + 1 },
        });
        const others = Array.from({ length: 4 }, () =>
          attempt('nudge', { ...reported(own + 900), added_messages: [800, 100] }),
        );
        const attempts = others.with(place, attempt('restart', reported(own)));
        expect(promptTokens(attempts, promptSize(['Tides?']))).toBe(own);
      }),
      { seed: SEED, numRuns: 50 },
    );
  });
});

test('a prompt without a report counts its tools, and is never empty', () => {
  const size = promptSize(['Tides?'], [{ name: 'tides', description: 'x'.repeat(400) }]);
  expect(promptTokens([attempt('first', {})], size)).toBe(estimatedPromptTokens(size));
  expect(estimatedPromptTokens(size)).toBeGreaterThan(100);
  expect(promptTokens([], promptSize([]))).toBe(1);
});
