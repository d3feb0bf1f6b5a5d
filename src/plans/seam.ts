import type { Mode, Prefix } from './continuation.ts';
import { commonPrefixLength, isPeriodic, isSeparator, tailOverlap } from './overlap.ts';

/** What was found at the seam; the `kind` label of `holdfast_seams_total`. */
export type SeamKind = 'clean' | 'whitespace' | 'echo' | 'restart' | 'overlap' | 'word' | 'fence' | 'replay';

export type SeamRejection = 'diverged' | 'ended_early' | 'no_continuation';

/** `emit` is what is new; `rejected` means that the attempt cannot be joined and must not be shown. */
export interface SeamStep {
  readonly emit: string;
  readonly rejected?: SeamRejection;
}

export interface SeamOptions {
  readonly mode: Mode;
  /** Everything the client was shown. */
  readonly delivered: string;
  readonly prefix: Prefix;
  /** The dialect repeats the prefix at the start of its answer. */
  readonly echoes: boolean;
}

/**
 * A continuation is held back until it is clear how it joins, and never longer than this. There is no limit in time:
 * a head that is still unclear repeats what was shown, and would be shown twice if the provider stalled within it.
 */
const HOLD_CHARACTERS = { prefill: 64, nudge: 400 } as const;
/** As long a common beginning with the answer's own beginning is a restart, not a coincidence. */
const RESTART_CHARACTERS = 48;
const RESTART_CHARACTERS_SHORT = 24;
const SHORT_ANSWER_CHARACTERS = 200;
/** A whole prefix that comes again is an echo if it is at least this long … */
const ECHO_CHARACTERS = 16;
/** … or this long, where the model was asked to repeat it or a whole word of it comes again. */
const ECHO_CHARACTERS_SHORT = 2;
const OVERLAP_WINDOW_CHARACTERS = 600;
const OVERLAP_CHARACTERS = { prefill: 24, nudge: 8 } as const;
/** After a single letter the same letter is as likely to go on with the word ("l" + "lama"). */
const WORD_CHARACTERS = 2;
const PREAMBLE_CHARACTERS = 120;

/** "Sure, here is the rest:" — a first line of its own, or a lead-in that ends in a colon. */
const PREAMBLE =
  /^(sure|certainly|of course|okay|ok|apologies|continuing|picking up|\[?continued|here(?:'|’| i)s the (?:rest|continuation))\b(?:[^\n:]{0,100}:(?: *\n| +)|[^\n]{0,118}\n)/i;
const PREAMBLE_OPENERS = [
  'sure',
  'certainly',
  'of course',
  'ok',
  'apologies',
  'continu',
  'picking up',
  '[continu',
  "here's the",
  'here’s the',
  'here is the',
];
/** The model answers the nudge instead of the user: nothing of this belongs to the answer. */
const META = /^(i(?:'|’| a)m sorry, (but )?i|i (don't|don’t|do not) see|there is no previous|as an ai\b)/i;
const META_OPENERS = [
  "i'm sorry, but i",
  'i’m sorry, but i',
  'i am sorry, but i',
  "i don't see",
  'i don’t see',
  'i do not see',
  'there is no previous',
  'as an ai',
];

const CLEAN: SeamStep = { emit: '' };

/**
 * Joins the text of a continuation to the text that was delivered. Streaming: holds back a bounded head until
 * it is clear how the two fit, then lets everything through.
 *
 * Zero overlap is the normal good case; overlap is only something to remove. Nothing is ever searched for in
 * the middle of the continuation: dropping what the model said is worse than repeating it.
 */
export class Seam {
  readonly #options: SeamOptions;
  /** `aligning`: it is known where the new text begins, but not yet whether with whitespace that was shown. */
  #state: 'holding' | 'swallowing' | 'aligning' | 'open';
  #held = '';
  #trimmed: string;
  /** How much of the delivered text has come again, while swallowing. */
  #swallowed = 0;
  #kind: SeamKind = 'clean';

  constructor(options: SeamOptions) {
    this.#options = options;
    this.#trimmed = options.prefix.trimmed;
    const repeats = options.mode === 'replay' || options.mode === 'restart';
    this.#state = options.delivered === '' ? 'open' : repeats ? 'swallowing' : 'holding';
    if (options.mode === 'replay') this.#kind = 'replay';
    if (this.#state === 'open') return;
    if (options.mode === 'restart') this.#kind = 'whitespace';
  }

  get kind(): SeamKind {
    return this.#kind;
  }

  /** True once everything that comes is new. */
  get isOpen(): boolean {
    return this.#state === 'open';
  }

  push(text: string): SeamStep {
    if (this.#state === 'open') return { emit: text };
    if (this.#state === 'swallowing') return this.#swallow(text);
    if (this.#state === 'aligning') return this.#align(text);
    this.#held += text;
    return this.#decide(false);
  }

  /** No more text will come: joins with what there is. */
  end(): SeamStep {
    const step = this.#state === 'holding' && this.#held !== '' ? this.#decide(true) : CLEAN;
    if (step.rejected || this.#state !== 'swallowing' || this.#options.mode === 'restart') return step;
    const repeatedAll = this.#swallowed >= this.#options.prefix.sent.length;
    return repeatedAll ? step : { emit: '', rejected: 'ended_early' };
  }

  #swallow(text: string): SeamStep {
    const { delivered, mode, prefix } = this.#options;
    const expected = delivered.slice(this.#swallowed, this.#swallowed + text.length);
    const same = commonPrefixLength(text, expected);
    this.#swallowed += same;
    if (same === text.length && this.#swallowed < delivered.length) return CLEAN;
    this.#state = 'open';
    if (this.#swallowed === delivered.length || mode === 'restart') return { emit: text.slice(same) };
    // All that was sent came again; only the trimmed whitespace did not.
    if (mode !== 'replay' && this.#swallowed >= prefix.sent.length) return { emit: text.slice(same) };
    return { emit: '', rejected: 'diverged' };
  }

  #decide(mustDecide: boolean): SeamStep {
    const { mode, prefix } = this.#options;
    const limit = mode === 'nudge' ? HOLD_CHARACTERS.nudge : HOLD_CHARACTERS.prefill;
    const final = mustDecide || this.#held.length >= limit;
    const head = prefix.sent.trimStart() === prefix.sent ? this.#held.trimStart() : this.#held;

    const same = commonPrefixLength(head, prefix.sent);
    if (same === prefix.sent.length && this.#isEcho(head, final)) return this.#open('echo', head.slice(same));
    if (same === head.length && same >= this.#restartCharacters) {
      this.#state = 'swallowing';
      this.#kind = 'restart';
      this.#swallowed = same;
      this.#held = '';
      return CLEAN;
    }
    if (same >= this.#restartCharacters && same < head.length) return this.#reject('diverged');
    if (!final && this.#isUndecided(head)) return CLEAN;

    if (mode === 'nudge') {
      const preamble = PREAMBLE.exec(head)?.[0];
      if (preamble && preamble.length <= PREAMBLE_CHARACTERS && preamble.length < head.length) {
        this.#held = head.slice(preamble.length);
        return this.#decide(mustDecide);
      }
      if (META.test(head)) return this.#reject('no_continuation');
    }

    const tail = prefix.sent.slice(-OVERLAP_WINDOW_CHARACTERS);
    const overlap = tailOverlap(tail, head, (candidate) => this.#isOverlap(candidate));
    if (overlap > 0) return this.#open('overlap', head.slice(overlap));
    const word = this.#repeatedWord(head);
    if (word > 0) return this.#open('word', head.slice(word));
    const fence = this.#reopenedFence(head);
    if (fence > 0) return this.#open('fence', head.slice(fence));
    return this.#open('clean', this.#held);
  }

  /** More text could still turn the head into something to be removed. */
  #isUndecided(head: string): boolean {
    const { prefix, mode } = this.#options;
    if (head.trim() === '') return true;
    if (prefix.sent.startsWith(head)) return true;
    if (prefix.sent.slice(-OVERLAP_WINDOW_CHARACTERS).includes(head)) return true;
    if (insideFence(prefix.sent) && head.startsWith('```') && !head.includes('\n')) return true;
    if (mode !== 'nudge') return false;
    if (lastWords(prefix.sent).some((word) => word.startsWith(head))) return true;
    const lower = head.toLowerCase();
    if (META_OPENERS.some((opener) => opener.startsWith(lower))) return true;
    const opens = PREAMBLE_OPENERS.some((opener) => opener.startsWith(lower) || lower.startsWith(opener));
    return opens && head.length < PREAMBLE_CHARACTERS && !/[:\n]\s*\S/.test(head);
  }

  get #restartCharacters(): number {
    const short = this.#options.delivered.length < SHORT_ANSWER_CHARACTERS;
    return short ? RESTART_CHARACTERS_SHORT : RESTART_CHARACTERS;
  }

  #isEcho(head: string, final: boolean): boolean {
    const { mode, prefix, echoes } = this.#options;
    const { sent } = prefix;
    if (echoes || sent.length >= ECHO_CHARACTERS) return true;
    if (sent.length < ECHO_CHARACTERS_SHORT || isPeriodic(sent)) return false;
    if (mode === 'nudge') return true;
    // A continuation would have to begin with the whitespace that was trimmed, or go on within the word.
    const next = head.charAt(sent.length);
    const endsWord = next === '' ? final : isSeparator(next) || isSeparator(sent.slice(-1));
    return head === this.#held && endsWord;
  }

  #isOverlap(candidate: string): boolean {
    if (isPeriodic(candidate) || !/[\p{L}\p{N}]/u.test(candidate)) return false;
    if (this.#options.mode !== 'nudge') return candidate.length >= OVERLAP_CHARACTERS.prefill;
    return candidate.length >= OVERLAP_CHARACTERS.nudge && /\s/.test(candidate.trim());
  }

  /** Asked to repeat the last words, a model may begin again with the word in the middle of which it was cut. */
  #repeatedWord(head: string): number {
    const { mode, prefix } = this.#options;
    if (mode !== 'nudge' || prefix.trimmed !== '') return 0;
    return lastWords(prefix.sent).find((word) => !isPeriodic(word) && head.startsWith(word))?.length ?? 0;
  }

  /** A code block that is open already must not be opened a second time. */
  #reopenedFence(head: string): number {
    if (!insideFence(this.#options.prefix.sent)) return 0;
    return /^```[^\s`]+\n/.exec(head)?.[0].length ?? 0;
  }

  #open(kind: SeamKind, rest: string): SeamStep {
    this.#kind = kind;
    this.#state = 'aligning';
    this.#held = '';
    return this.#align(rest);
  }

  /** The client has the trimmed characters already; the continuation may bring them again, whole or in part. */
  #align(rest: string): SeamStep {
    const same = commonPrefixLength(rest, this.#trimmed);
    if (same > 0 && this.#kind === 'clean') this.#kind = 'whitespace';
    if (same === rest.length && same < this.#trimmed.length) {
      this.#trimmed = this.#trimmed.slice(same);
      return CLEAN;
    }
    this.#state = 'open';
    if (same === this.#trimmed.length) return { emit: rest.slice(same) };
    // Fewer line breaks than were shown are still the same break; other whitespace is the model's own.
    const halfPair = this.#trimmed.trim();
    const leading = rest.length - rest.trimStart().length;
    if (same !== leading) return { emit: rest };
    return { emit: rest.slice(rest.startsWith(halfPair, same) ? same + halfPair.length : same) };
  }

  #reject(rejected: SeamRejection): SeamStep {
    this.#state = 'open';
    return { emit: '', rejected };
  }
}

/** What a model may take for the last word: everything since the last space, or only its letters. */
function lastWords(text: string): string[] {
  const tail = text.slice(-64);
  const words = [/\S+$/u.exec(tail)?.[0] ?? '', /[\p{L}\p{M}]+$/u.exec(tail)?.[0] ?? ''];
  return words.filter((word) => word.length >= WORD_CHARACTERS);
}

function insideFence(text: string): boolean {
  return ((text.match(/^```/gm)?.length ?? 0) & 1) === 1;
}
