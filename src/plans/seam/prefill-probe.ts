import type { PrefillManner } from './prefill.ts';

/**
 * A question with the beginning of an answer that ends within a word: in a turn of its own a model begins with a word. Nor
 * would it begin an answer to this question as this one is begun, so that an echo can be told from an answer begun anew.
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
