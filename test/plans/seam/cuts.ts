import fc from 'fast-check';
import { TEXT_KINDS } from './texts.ts';

/** An answer, and the part that the client had when it was cut. */
export interface Cut {
  readonly kind: string;
  readonly whole: string;
  readonly delivered: string;
  /** Sizes of the chunks in which the rest arrives. */
  readonly sizes: readonly number[];
}

export const KINDS = Object.keys(TEXT_KINDS);
/** Kinds of text that don't repeat themselves by nature. */
export const PLAIN_KINDS = KINDS.filter((kind) => !TEXT_KINDS[kind]?.repeats);

/** An answer of any of these kinds, cut anywhere after some visible text. */
export const cutsOf = (kinds: readonly string[]): fc.Arbitrary<Cut> =>
  fc.constantFrom(...kinds).chain((kind) =>
    (TEXT_KINDS[kind]?.texts ?? fc.constant('x'))
      .filter((whole) => whole.trim().length > 2)
      .chain((whole) => {
        const first = whole.length - whole.trimStart().length + 2;
        return fc.record({
          kind: fc.constant(kind),
          whole: fc.constant(whole),
          delivered: fc.integer({ min: first, max: whole.length }).map((at) => whole.slice(0, at)),
          sizes: fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 }),
        });
      }),
  );
