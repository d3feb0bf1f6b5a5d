import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anchorOf, type Mode, prefixOf } from '../../src/plans/continuation.ts';
import type { SeamOptions } from '../../src/plans/seam.ts';
import { join, pieces, seamOptions } from './joining.ts';

/** `HOLDFAST_SEED` looks elsewhere; a failure prints the seed that reproduces it. */
const SEED = Number(process.env.HOLDFAST_SEED ?? 20_261_120);
const RUNS = { seed: SEED, numRuns: 2_000 };
const titled = (what: string) => `${what} (${RUNS.numRuns} cases, seed ${SEED})`;

const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 });

describe('any continuation of any answer', () => {
  /** Few pieces, so that repetitions, echoes, fences and openers are frequent. */
  const PIECES = [
    ...['a', 'b', ' ', ' ', '\n', '\n\n', '. ', '-', '0.0, ', '```', '```ts\n', '|---|', '🙂', '好'],
    ...['the quick brown fox ', 'jumps over the lazy dog', 'Once upon a time in a land far away, '],
    ...[
      'Sure, here is the rest:\n',
      'Sure',
      'Okay\n',
      'As an AI',
      "I don't see",
      ': ',
      'I',
      'wonder',
      'ful ',
    ],
  ];
  const texts = (maxLength: number) =>
    fc.array(fc.constantFrom(...PIECES), { maxLength }).map((list) => list.join(''));

  const cases: fc.Arbitrary<{ options: SeamOptions; continuation: string; sizes: readonly number[] }> = fc
    .record({
      mode: fc.constantFrom<Mode>('prefill', 'prefill', 'nudge', 'nudge', 'replay', 'restart'),
      // A continuation hangs on text, and may be asked for within a surrogate pair.
      delivered: fc
        .tuple(texts(14), fc.constantFrom('', '', '', '\ud83d'))
        .map(([text, half]) => `x${text}${half}`),
      from: fc.double({ min: 0, max: 1, noNaN: true }),
      own: texts(8),
      lead: fc.constantFrom('', '', '', '\n', 'Sure, here is the rest:\n'),
      echoes: fc.boolean(),
      sizes,
    })
    .map(({ mode, delivered, from, own, lead, echoes, sizes }) => ({
      options: seamOptions(mode, delivered, echoes && mode === 'prefill'),
      // Anything from the whole answer again to nothing of it, and then something else.
      continuation: lead + delivered.slice(Math.floor(delivered.length * from)) + own,
      sizes,
    }));

  test(titled('joins in the same way however it is cut into chunks'), () => {
    fc.assert(
      fc.property(cases, ({ options, continuation, sizes }) => {
        const { text, rejected } = join(options, [continuation]);
        expect(join(options, pieces(continuation, [1]))).toMatchObject({ text, rejected });
        expect(join(options, pieces(continuation, sizes))).toMatchObject({ text, rejected });
      }),
      RUNS,
    );
  });

  test(titled('is held back no longer than the bound, unless it repeats what was delivered'), () => {
    fc.assert(
      fc.property(cases, ({ options, continuation, sizes }) => {
        const bound = options.mode === 'nudge' ? 400 : 64;
        join(options, pieces(continuation, sizes), (seam, pushed, emitted) => {
          if (seam.isOpen) return;
          expect(emitted).toBe('');
          const said = pushed.replace(/^Sure, here is the rest:\n/, '').trimStart();
          if (said.length > bound) expect(options.delivered).toContain(said);
        });
      }),
      RUNS,
    );
  });

  test(titled('is given out to the letter once the seam is open'), () => {
    fc.assert(
      fc.property(cases, sizes, ({ options, continuation }, sizes) => {
        let openedAt: { pushed: number; emitted: number } | undefined;
        join(options, pieces(continuation, sizes), (seam, pushed, emitted) => {
          if (openedAt) expect(emitted.slice(openedAt.emitted)).toBe(pushed.slice(openedAt.pushed));
          else if (seam.isOpen) openedAt = { pushed: pushed.length, emitted: emitted.length };
        });
      }),
      RUNS,
    );
  });
});

describe('an answer that repeats nothing, cut anywhere', () => {
  const WORDS =
    'amber bridge candle desert engine forest garden harbour island jungle kettle lantern meadow needle orchid pepper quartz river saddle timber umbrella velvet window yellow zephyr Zürich 北京 東京 🙂 €42'.split(
      ' ',
    );
  const answers = fc
    .tuple(
      fc.shuffledSubarray(WORDS, { minLength: 12 }),
      fc.array(fc.constantFrom(' ', ' ', ' ', ', ', '.\n', '\n\n', '\n- ', ' — '), {
        minLength: 31,
        maxLength: 31,
      }),
    )
    .map(([words, separators]) => words.map((word, index) => word + separators[index]).join(''));

  /** What models make of the request for the rest; all of it is to be cut down to the rest. */
  const MANNERS: Record<string, (sent: string, rest: string) => string> = {
    'goes straight on': (_, rest) => rest,
    'echoes the prefix': (sent, rest) => sent + rest,
    'begins with a line break': (sent, rest) => `\n${sent}${rest}`,
    'repeats the last 40 characters': (sent, rest) => sent.slice(-40) + rest,
  };
  const NUDGED: Record<string, (sent: string, rest: string) => string> = {
    ...MANNERS,
    'repeats what it was asked to': (sent, rest) => anchorOf(sent) + rest,
    'says so first': (sent, rest) => `Sure, here is the rest:\n${anchorOf(sent)}${rest}`,
  };

  test.each(
    [
      ...Object.entries(MANNERS).map(([manner, say]) => ({ mode: 'prefill' as const, manner, say })),
      ...Object.entries(NUDGED).map(([manner, say]) => ({ mode: 'nudge' as const, manner, say })),
      { mode: 'replay' as const, manner: 'starts again', say: (sent: string, rest: string) => sent + rest },
    ].map((each) => [`${each.mode}: the model ${each.manner}`, each] as const),
  )(titled('%s'), (_, { mode, say }) => {
    const cuts = answers.chain((whole) =>
      fc.record({ whole: fc.constant(whole), at: fc.integer({ min: 32, max: whole.length }), sizes }),
    );
    fc.assert(
      fc.property(cuts, ({ whole, at, sizes }) => {
        const delivered = whole.slice(0, at);
        const { sent } = prefixOf(delivered);
        const continuation = say(sent, whole.slice(sent.length));
        expect(join(seamOptions(mode, delivered), pieces(continuation, sizes)).text).toBe(whole);
      }),
      RUNS,
    );
  });
});
