import type { Asked } from '../../provider/script.ts';

/** What a model makes of a request for the rest. */
export type Manner = (asked: Asked) => string;

const rest = ({ whole, sent }: Asked): string => whole.slice(sent.length);

/** Of a prefix: after these, a nudge that is followed makes the answer whole. */
export const PREFILLED = {
  'continues it': (asked: Asked) => rest(asked),
  'repeats it first': (asked: Asked) => asked.sent + rest(asked),
  'repeats it first, behind a space': (asked: Asked) => ` ${asked.sent.trimStart()}${rest(asked)}`,
  'answers anew': ({ whole }: Asked) => whole,
} as const satisfies Readonly<Record<string, Manner>>;

/** Of a nudge: these do what they were asked to. */
export const OBEDIENT = {
  'repeats the anchor': (asked: Asked) => asked.anchor + rest(asked),
  'repeats the anchor behind a line break': (asked: Asked) => `\n${asked.anchor}${rest(asked)}`,
  'says so and repeats the anchor': (asked: Asked) =>
    `Sure, here is the rest:\n${asked.anchor}${rest(asked)}`,
} as const satisfies Readonly<Record<string, Manner>>;

/** And these do not: what they say in front of the rest, all of it words that were delivered. */
const DISOBEDIENT = {
  'goes straight on': () => '',
  'repeats more than the anchor': ({ sent, anchor }: Asked) =>
    sent.slice(Math.max(0, sent.length - anchor.length - 37)),
  'repeats half of the anchor': ({ anchor }: Asked) => anchor.slice(anchor.length >> 1),
  'repeats the last words': ({ sent }: Asked) => /(?:\S+\s+){0,3}\S+\s*$/u.exec(sent)?.[0] ?? '',
  'begins the word again': ({ sent }: Asked) => /\p{L}*$/u.exec(sent)?.[0] ?? '',
  'begins the answer again': ({ sent }: Asked) => sent,
} as const satisfies Readonly<Record<string, Manner>>;

/** The same, with and without a lead-in; `title` is what it does. */
export const DISOBEDIENT_WAYS = Object.entries(DISOBEDIENT).flatMap(([manner, lead]) =>
  ['', 'Sure, here is the rest:\n'].map((preamble) => ({
    title: preamble === '' ? manner : `${manner}, behind a preamble`,
    lead: lead as Manner,
    says: (asked: Asked) => preamble + lead(asked) + rest(asked),
  })),
);
