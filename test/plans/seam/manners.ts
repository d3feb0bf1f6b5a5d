import type { Asked } from '../../provider/script.ts';

/** How a model responds to a request for the rest. */
export type Manner = (asked: Asked) => string;

const rest = ({ whole, sent }: Asked): string => whole.slice(sent.length);

/** Responses to a prefix. An obeyed nudge after any of them completes the answer. */
export const PREFILLED = {
  'continues it': (asked: Asked) => rest(asked),
  'repeats it first': (asked: Asked) => asked.sent + rest(asked),
  'repeats it first, behind a space': (asked: Asked) => ` ${asked.sent.trimStart()}${rest(asked)}`,
  'answers anew': ({ whole }: Asked) => whole,
} as const satisfies Readonly<Record<string, Manner>>;

/** Responses to a nudge that do what was asked. */
export const OBEDIENT = {
  'repeats the anchor': (asked: Asked) => asked.anchor + rest(asked),
  'repeats the anchor behind a line break': (asked: Asked) => `\n${asked.anchor}${rest(asked)}`,
  'says so and repeats the anchor': (asked: Asked) =>
    `Sure, here is the rest:\n${asked.anchor}${rest(asked)}`,
} as const satisfies Readonly<Record<string, Manner>>;

/** Responses to a nudge that don't: the text before the rest, all of which was already delivered. */
const DISOBEDIENT = {
  'goes straight on': () => '',
  'repeats more than the anchor': ({ sent, anchor }: Asked) =>
    sent.slice(Math.max(0, sent.length - anchor.length - 37)),
  'repeats half of the anchor': ({ anchor }: Asked) => anchor.slice(anchor.length >> 1),
  'repeats the last words': ({ sent }: Asked) => /(?:\S+\s+){0,3}\S+\s*$/u.exec(sent)?.[0] ?? '',
  'begins the word again': ({ sent }: Asked) => /\p{L}*$/u.exec(sent)?.[0] ?? '',
  'begins the answer again': ({ sent }: Asked) => sent,
} as const satisfies Readonly<Record<string, Manner>>;

/** The same responses with and without a lead-in; `title` describes them. */
export const DISOBEDIENT_WAYS = Object.entries(DISOBEDIENT).flatMap(([manner, lead]) =>
  ['', 'Sure, here is the rest:\n'].map((preamble) => ({
    title: preamble === '' ? manner : `${manner}, behind a preamble`,
    lead: lead as Manner,
    says: (asked: Asked) => preamble + lead(asked) + rest(asked),
  })),
);
