import { speakable } from '../../lib/text.ts';

/**
 * How a continuation asks for the rest. `resume` returns to the same answer, which its provider has continued to make.
 * `restart` re-issues the original because nothing is worth keeping (R4).
 */
export const MODES = ['resume', 'prefill', 'nudge', 'replay', 'restart'] as const;
export type Mode = (typeof MODES)[number];

/** Whether an attempt of this mode was given what had been said before, and asked for what follows. */
export const asksForRest = (mode: string): boolean => mode === 'prefill' || mode === 'nudge';

/** What a target makes of a trailing assistant message: continues it, repeats it first and then continues, or answers anew. */
export type PrefillManner = 'exact' | 'echo' | 'new_turn';

/** The delivered text as a provider may be sent it, and what had to be left off its end. */
export interface Prefix {
  readonly sent: string;
  /** White space, or half a surrogate pair: delivered to the client, but not sent. */
  readonly trimmed: string;
}

/**
 * Half a surrogate pair is not text. White space at its end is left off as well unless the target is known to keep it
 * (`keepsSpace`): several providers refuse a prefix that ends in white space, or drop it silently. Whatever is trimmed is
 * taken off the head of the continuation again by the seam.
 */
export function prefixOf(delivered: string, keepsSpace: boolean): Prefix {
  const whole = speakable(delivered);
  const sent = keepsSpace ? whole : whole.trimEnd();
  return { sent, trimmed: delivered.slice(sent.length) };
}

/**
 * A question with the beginning of an answer that ends within a word: in a turn of its own a model begins with a word. Nor
 * would it begin an answer to this question as this one is begun, so that an echo is distinct from an answer begun anew.
 */
export const PROBE = {
  question:
    'Write the numbers from one to nine as English words, in order, separated by ", ". Write nothing else.',
  said: 'As you wish: one, two, three, four, fi',
};

/** How any model continues `PROBE.said`. */
const NEXT = /^ve\b/i;

/** What a target makes of a prefix, by its answer to {@link PROBE}; `undefined` for no answer. */
export function probedManner(answer: string): PrefillManner | undefined {
  const text = answer.trimStart();
  if (text === '') return undefined;
  if (NEXT.test(text)) return 'exact';
  return text.startsWith(PROBE.said) && NEXT.test(text.slice(PROBE.said.length)) ? 'echo' : 'new_turn';
}
