import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anchorOf } from '../../../src/plans/seam/anchor.ts';
import { prefixOf } from '../../../src/plans/seam/mode.ts';
import { seedOr, CASES as USUAL_CASES } from '../../cases.ts';
import type { Asked } from '../../provider/script.ts';
import { type Cut, cutsOf, KINDS, PLAIN_KINDS } from './cuts.ts';
import { isDecidable, isPlain, nudgeAfter } from './decidable.ts';
import { type Asking, type Joined, join, pieces, seamOptions } from './joining.ts';
import { DISOBEDIENT_WAYS, type Manner, OBEDIENT, PREFILLED } from './manners.ts';

const SEED = seedOr(20_261_122);
/** These are cheaper than other properties, so there are more of them: vitest.oracle.config.ts. */
const CASES = Number(process.env.HOLDFAST_SEAM_CASES ?? USUAL_CASES);

interface Way extends Asking {
  readonly says: Manner;
}

/** Divides the cases equally among the ways. */
const shared = (ways: number) => ({ seed: SEED, numRuns: Math.ceil(CASES / ways) });

function joined({ whole, delivered, sizes }: Cut, { says, ...asking }: Way): Joined {
  const keepsSpace = asking.keepsSpace ?? asking.mode === 'nudge';
  const { sent } = prefixOf(delivered, keepsSpace);
  const anchor = asking.mode === 'nudge' ? anchorOf(delivered) : '';
  return join(seamOptions(delivered, asking), pieces(says({ whole, sent, anchor }), sizes));
}

/** As a run does: tries the next way until one isn't rejected. */
function asked(cut: Cut, ways: readonly Way[]): Joined {
  let last = joined(cut, ways[0] as Way);
  for (const way of ways.slice(1)) {
    if (!last.rejected) return last;
    expect(last.emitted).toBe('');
    last = joined(cut, way);
  }
  return last;
}

const nudges = (says: Manner): Way[] => [
  { mode: 'nudge', says },
  { mode: 'nudge', says, lastResort: true },
];

const claimed = (says: Manner): Way => ({ mode: 'prefill', manner: 'exact', isProven: false, says });

const EXACT: Readonly<Record<string, readonly Way[]>> = {
  'a prefill that is exact and keeps white space': [
    { mode: 'prefill', manner: 'exact', keepsSpace: true, says: PREFILLED['continues it'] },
  ],
  'a prefill that is exact and drops white space': [
    { mode: 'prefill', manner: 'exact', says: PREFILLED['continues it'] },
  ],
  'a prefill that is exact according to the dialect, then a nudge': [
    claimed(PREFILLED['continues it']),
    ...nudges(OBEDIENT['repeats the anchor']),
  ],
  'a prefill that is echoed': [{ mode: 'prefill', manner: 'echo', says: PREFILLED['repeats it first'] }],
  'a prefill that is echoed behind a space': [
    { mode: 'prefill', manner: 'echo', says: PREFILLED['repeats it first, behind a space'] },
  ],
  'a replay': [{ mode: 'replay', says: ({ whole }: Asked) => whole }],
  ...Object.fromEntries(
    Object.entries(OBEDIENT).map(([manner, says]) => [`a nudge, and the model ${manner}`, nudges(says)]),
  ),
  ...Object.fromEntries(
    Object.entries(PREFILLED).map(([manner, says]) => [
      `a prefill of which nothing is known and that the model ${manner}, then a nudge`,
      [{ mode: 'prefill', says } as const, ...nudges(OBEDIENT['repeats the anchor'])],
    ]),
  ),
};

describe('every character once, in any kind of text cut anywhere', () => {
  const entries = Object.entries(EXACT);
  test.each(entries)(`%s (${CASES} cases among ${entries.length}, seed ${SEED})`, (_, ways) => {
    fc.assert(
      fc.property(cutsOf(KINDS), (cut) => {
        const { text, rejected } = asked(cut, ways);
        expect({ text, rejected }, cut.kind).toEqual({ text: cut.whole, rejected: undefined });
      }),
      shared(entries.length),
    );
  });
});

describe('a model that answers anew although its dialect continues a prefix exactly', () => {
  test(`shows nothing twice where a text repeats nothing (seed ${SEED})`, () => {
    const ways = [claimed(PREFILLED['answers anew']), ...nudges(OBEDIENT['repeats the anchor'])];
    fc.assert(
      fc.property(cutsOf(PLAIN_KINDS), (cut) => {
        // The rest may start with fewer characters by chance.
        fc.pre(prefixOf(cut.delivered, false).sent.trim().length >= 12);
        expect(asked(cut, ways)).toMatchObject({ text: cut.whole, rejected: undefined });
      }),
      shared(1),
    );
  });
});

describe('a model that does not do as it is asked', () => {
  const ways = DISOBEDIENT_WAYS.length;
  test.each(DISOBEDIENT_WAYS)(
    `loses no character: it $title (${CASES} cases among ${ways}, seed ${SEED})`,
    ({ lead, says }) => {
      fc.assert(
        fc.property(cutsOf(KINDS), (cut) => {
          fc.pre(isDecidable(cut, lead(nudgeAfter(cut))));
          const { text, rejected } = asked(cut, nudges(says));
          if (rejected) return;
          const added = text.slice(cut.delivered.length);
          const rest = cut.whole.slice(cut.delivered.length);
          expect(added.endsWith(rest), `${cut.kind}: ${JSON.stringify({ added, rest })}`).toBe(true);
        }),
        shared(ways),
      );
    },
  );

  test.each(DISOBEDIENT_WAYS)(
    `shows none twice where a text repeats nothing: it $title (seed ${SEED})`,
    ({ lead, says }) => {
      fc.assert(
        fc.property(cutsOf(PLAIN_KINDS), (cut) => {
          fc.pre(isPlain(cut, lead(nudgeAfter(cut))));
          const { text, rejected } = asked(cut, nudges(says));
          if (!rejected) expect({ text }).toEqual({ text: cut.whole });
        }),
        shared(ways),
      );
    },
  );
});

describe('a model that continues from a prefix in a way of which nothing is known', () => {
  const ways = DISOBEDIENT_WAYS.length;
  test.each(DISOBEDIENT_WAYS)(
    `loses no character, and shows none twice where a text repeats nothing: it $title (${CASES} cases among ${ways}, seed ${SEED})`,
    ({ lead, says }) => {
      fc.assert(
        fc.property(cutsOf(KINDS), fc.boolean(), (cut, keepsSpace) => {
          const { kind, whole, delivered } = cut;
          const tried: Way = { mode: 'prefill', keepsSpace, says };
          const { text, rejected } = asked(cut, [tried, ...nudges(OBEDIENT['repeats the anchor'])]);
          const rest = whole.slice(delivered.length);
          expect({ rejected, isWhole: text.slice(delivered.length).endsWith(rest) }, kind).toEqual({
            isWhole: true,
          });
          const { sent } = prefixOf(delivered, keepsSpace);
          if (PLAIN_KINDS.includes(kind) && isPlain(cut, lead({ whole, sent, anchor: '' })))
            expect({ text }, kind).toEqual({ text: whole });
        }),
        shared(ways),
      );
    },
  );
});

describe('a target that promised more than it keeps', () => {
  test(`an echo that is none is not shown (seed ${SEED})`, () => {
    fc.assert(
      fc.property(cutsOf(KINDS), (cut) => {
        const way: Way = { mode: 'prefill', manner: 'echo', says: () => '§ something else' };
        expect(joined(cut, way)).toMatchObject({ emitted: '', rejected: 'diverged' });
      }),
      { seed: SEED, numRuns: 200 },
    );
  });
});
