import { speakable } from '../../lib/text.ts';

/**
 * How a continuation asks for the rest. `resume` returns to the same answer, which its provider kept generating.
 * `restart` sends the original request again because nothing is worth keeping (R4).
 */
export const MODES = ['resume', 'prefill', 'nudge', 'replay', 'restart'] as const;
export type Mode = (typeof MODES)[number];

/** True for modes that send the answer so far and ask for what follows. */
export const asksForRest = (mode: string): boolean => mode === 'prefill' || mode === 'nudge';

/** How a target treats a trailing assistant message: continues it, repeats it first, or starts a new answer. */
export type PrefillManner = 'exact' | 'echo' | 'new_turn';

export interface ModeFacts {
  readonly plan: 'R1' | 'R3';
  /** `undefined` if unknown. */
  readonly prefill: PrefillManner | undefined;
  readonly prefillWithTools: boolean;
  /** Length of the prefix. */
  readonly characters: number;
  readonly hasTools: boolean;
  /** No text followed an incomplete call, so the text ends where the call began. */
  readonly callsComeNext: boolean;
  /** Structured output or a forced tool: a model that is asked to continue starts such an answer again. */
  readonly onlyReplay: boolean;
  /** A prefill would make the provider read the whole conversation without its prompt cache; a nudge wouldn't. */
  readonly nudgeIsCached: boolean;
  /** Only proven seams are allowed. */
  readonly strict: boolean;
  /** Modes that already failed in this run. */
  readonly failed: ReadonlySet<Mode>;
}

/** A shorter prefix wouldn't show whether the model continued it or started again. */
const TRIAL_CHARACTERS = 16;

/** The preferred mode that the request and the target allow; `undefined` if none is left. */
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
 * Whether a prefill is enough to get the calls. Only a nudge can name a call that was cut, but no name is needed if the
 * model returns to the exact token before the call: it made the call from there before, and its server also parses
 * calls in text that follows a prefix.
 */
const comesToCalls = ({ plan, prefill, characters, callsComeNext }: ModeFacts): boolean =>
  plan === 'R1' || (prefill === 'exact' && characters > 0 && callsComeNext);

function mayPrefill({ prefill, prefillWithTools, hasTools, characters, strict }: ModeFacts): boolean {
  if (prefill === 'new_turn' || (hasTools && !prefillWithTools)) return false;
  return prefill !== undefined || (characters >= TRIAL_CHARACTERS && !strict);
}

/** The delivered text in a form that providers accept, and what was removed from its end. */
export interface Prefix {
  readonly sent: string;
  /** White space, or half a surrogate pair: delivered to the client, but not sent. */
  readonly trimmed: string;
}

/**
 * Half a surrogate pair isn't valid text. Trailing white space is removed too, unless the target is known to keep it
 * (`keepsSpace`): several providers refuse a prefix that ends in white space, or drop that silently. If the
 * continuation brings the removed part again, the seam takes it off.
 */
export function prefixOf(delivered: string, keepsSpace: boolean): Prefix {
  const whole = speakable(delivered);
  const sent = keepsSpace ? whole : whole.trimEnd();
  return { sent, trimmed: delivered.slice(sent.length) };
}

/**
 * The partial answer ends within a word, because a model starts a turn of its own with a whole word. Its opening is one
 * that no model would choose for this question, which distinguishes an echo from a new answer.
 */
export const PROBE = {
  question:
    'Write the numbers from one to nine as English words, in order, separated by ", ". Write nothing else.',
  said: 'As you wish: one, two, three, four, fi',
};

/** How any model continues `PROBE.said`. */
const NEXT = /^ve\b/i;

/** How a target treats a prefix, judged by its answer to {@link PROBE}; `undefined` for an empty answer. */
export function probedManner(answer: string): PrefillManner | undefined {
  const text = answer.trimStart();
  if (text === '') return undefined;
  if (NEXT.test(text)) return 'exact';
  return text.startsWith(PROBE.said) && NEXT.test(text.slice(PROBE.said.length)) ? 'echo' : 'new_turn';
}
