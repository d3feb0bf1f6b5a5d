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

export interface ModeFacts {
  readonly plan: 'R1' | 'R3';
  /** `undefined` while it is not known. */
  readonly prefill: PrefillManner | undefined;
  readonly prefillWithTools: boolean;
  /** Length of the prefix. */
  readonly characters: number;
  readonly hasTools: boolean;
  /** No text came after a call that was cut: the text ends where it began. */
  readonly callsComeNext: boolean;
  /** Structured output, a forced tool: a model asked to continue starts such an answer anew. */
  readonly onlyReplay: boolean;
  /** After a prefill its provider reads the whole conversation without its prompt cache, after a nudge it does not. */
  readonly nudgeIsCached: boolean;
  /** Only seams that prove themselves are allowed. */
  readonly strict: boolean;
  /** Modes that already failed in this run. */
  readonly failed: ReadonlySet<Mode>;
}

/** A shorter prefix would not show whether the model continued it or began again. */
const TRIAL_CHARACTERS = 16;

/** The first mode in order of preference that the request and the target allow, or `undefined` when none is left. */
export function chooseMode(facts: ModeFacts): Exclude<Mode, 'restart'> | undefined {
  const candidates: Exclude<Mode, 'restart'>[] = [];
  if (!facts.onlyReplay) {
    const ways: Exclude<Mode, 'restart'>[] = mayPrefill(facts) ? ['prefill', 'nudge'] : ['nudge'];
    candidates.push(...(comesToCalls(facts) && !facts.nudgeIsCached ? ways : ways.reverse()));
  }
  candidates.push('replay');
  return candidates.find((mode) => !facts.failed.has(mode));
}

/**
 * Only a nudge can say which call was cut. None has to where the model is put back to the very token before it: it made the
 * call from there once, in a turn of its own, and its server makes calls of what is generated behind a prefix as well.
 */
const comesToCalls = ({ plan, prefill, characters, callsComeNext }: ModeFacts): boolean =>
  plan === 'R1' || (prefill === 'exact' && characters > 0 && callsComeNext);

function mayPrefill({ prefill, prefillWithTools, hasTools, characters, strict }: ModeFacts): boolean {
  if (prefill === 'new_turn' || (hasTools && !prefillWithTools)) return false;
  return prefill !== undefined || (characters >= TRIAL_CHARACTERS && !strict);
}

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
