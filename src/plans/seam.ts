import { isMeta, mayBecomeChatter, preambleOf } from './chatter.ts';
import { anchorOf, type Mode, type Prefix } from './continuation.ts';
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
 * A continuation is held back until it is clear how it joins, and no longer than this unless it repeats what was
 * shown. There is no limit in time: such a head would be shown twice if the provider stalled within it.
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
/** An opening fence has an info string; a bare one closes. */
const OPENING_FENCE = /^```[^\s`]{1,32}\n/;

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
  /** What comes again when the answer is repeated from the top, and how much of it has. */
  readonly #expected: string;
  #swallowed = 0;
  /** What was delivered after that, and may come again or not. */
  readonly #trimmed: string;
  #kind: SeamKind = 'clean';
  #callsFollow = false;

  constructor(options: SeamOptions) {
    const { mode, delivered, prefix } = options;
    const repeats = mode === 'replay' || mode === 'restart';
    this.#options = options;
    this.#expected = repeats ? delivered : prefix.sent;
    this.#trimmed = repeats ? '' : prefix.trimmed;
    this.#state = delivered === '' ? 'open' : repeats ? 'swallowing' : 'holding';
    if (mode === 'replay') this.#kind = 'replay';
    else if (mode === 'restart' && delivered !== '') this.#kind = 'whitespace';
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

  /** No more text will come: joins with what there is. `callsFollow`: the rest is, or goes on with, tool calls. */
  end(callsFollow = false): SeamStep {
    this.#callsFollow = callsFollow;
    const step = this.#state === 'holding' ? this.#decide(true) : CLEAN;
    if (this.#state !== 'swallowing' || this.#options.mode === 'restart') return step;
    return this.#swallowed < this.#options.prefix.sent.length ? this.#reject('ended_early') : step;
  }

  /**
   * A call begins, and the text before it has ended: joins with what there is. Whatever text comes from now on is beside
   * what was delivered, unless that is still being repeated.
   */
  release(): SeamStep {
    this.#callsFollow = true;
    const step = this.#state === 'holding' ? this.#decide(true) : CLEAN;
    if (this.#state === 'aligning') this.#state = 'open';
    return step;
  }

  #swallow(text: string): SeamStep {
    const expected = this.#expected.slice(this.#swallowed, this.#swallowed + text.length);
    const same = commonPrefixLength(text, expected);
    this.#swallowed += same;
    const isOver = this.#swallowed === this.#expected.length;
    if (same === text.length && !isOver) return CLEAN;
    if (isOver || this.#options.mode === 'restart') return this.#open(this.#kind, text.slice(same));
    return this.#reject('diverged');
  }

  #decide(ended: boolean): SeamStep {
    const { mode, prefix } = this.#options;
    const head = /^\s/.test(prefix.sent) ? this.#held : this.#held.trimStart();

    const same = commonPrefixLength(head, prefix.sent);
    if (same === prefix.sent.length && this.#isEcho(head, ended)) return this.#open('echo', head.slice(same));
    if (same >= this.#restartCharacters)
      return same < head.length ? this.#reject('diverged') : this.#restart(same);
    if (!ended && this.#isUndecided(head)) return CLEAN;

    if (mode === 'nudge') {
      const preamble = preambleOf(head, this.#callsFollow);
      if (preamble !== '') {
        this.#held = head.slice(preamble.length);
        return this.#decide(ended);
      }
      if (isMeta(head)) return this.#reject('no_continuation');
    }

    const overlap = tailOverlap(this.#tail, head);
    if (this.#isRepetition(overlap)) return this.#open('overlap', head.slice(overlap.length));
    const word = this.#repeatedWord(head);
    if (word > 0) return this.#open('word', head.slice(word));
    const fence = this.#reopenedFence(head);
    if (fence > 0) return this.#open('fence', head.slice(fence));
    return this.#open('clean', this.#held);
  }

  /** More text could still turn the head into something to be removed. */
  #isUndecided(head: string): boolean {
    const { prefix, mode } = this.#options;
    if (head !== '' && (prefix.sent.startsWith(head) || this.#tail.includes(head))) return true;
    const limit = mode === 'nudge' ? HOLD_CHARACTERS.nudge : HOLD_CHARACTERS.prefill;
    if (this.#held.length >= limit) return false;
    if (head === '') return true;
    if (this.#mayReopenFence(head) && mayOpenFence(head)) return true;
    return mode === 'nudge' && mayBecomeChatter(head);
  }

  get #tail(): string {
    return this.#options.prefix.sent.slice(-OVERLAP_WINDOW_CHARACTERS);
  }

  get #restartCharacters(): number {
    const short = this.#options.delivered.length < SHORT_ANSWER_CHARACTERS;
    return short ? RESTART_CHARACTERS_SHORT : RESTART_CHARACTERS;
  }

  #isEcho(head: string, ended: boolean): boolean {
    const { mode, prefix, echoes } = this.#options;
    const { sent } = prefix;
    if (echoes || sent.length >= ECHO_CHARACTERS) return true;
    if (sent.length < ECHO_CHARACTERS_SHORT || isPeriodic(sent)) return false;
    if (mode === 'nudge') return true;
    // A continuation would have to begin with the whitespace that was trimmed, or go on within the word.
    const next = head.charAt(sent.length);
    const endsWord = next === '' ? ended : isSeparator(next) || isSeparator(sent.slice(-1));
    return head === this.#held && endsWord;
  }

  #isRepetition(overlap: string): boolean {
    if (isPeriodic(overlap) || !/[\p{L}\p{N}]/u.test(overlap)) return false;
    const { mode, prefix } = this.#options;
    if (mode !== 'nudge') return overlap.length >= OVERLAP_CHARACTERS.prefill;
    if (overlap.length < OVERLAP_CHARACTERS.nudge) return false;
    // Not every script has spaces, but what was asked for is no coincidence.
    return /\s/.test(overlap) || overlap.length >= anchorOf(prefix.sent).length;
  }

  /** Asked to repeat the last words, a model may begin again with the word in the middle of which it was cut. */
  #repeatedWord(head: string): number {
    const { mode, prefix } = this.#options;
    // After a space it is another word, which may well be the same ("had had").
    if (mode !== 'nudge' || prefix.trimmed !== '' || head !== this.#held) return 0;
    return lastWords(prefix.sent).find((word) => !isPeriodic(word) && head.startsWith(word))?.length ?? 0;
  }

  /** A code block that is open already must not be opened a second time. */
  #reopenedFence(head: string): number {
    if (!this.#mayReopenFence(head)) return 0;
    const { sent } = this.#options.prefix;
    const opening = OPENING_FENCE.exec(head)?.[0];
    if (!opening) return 0;
    // Where the opening line is all there is of the block, it still lacks its end.
    return sent.endsWith(opening.trimEnd()) ? opening.length - 1 : opening.length;
  }

  /** Only at once: after a line break the fence is the code's own, as in a block of Markdown. */
  #mayReopenFence(head: string): boolean {
    return head === this.#held && insideFence(this.#options.prefix.sent);
  }

  #restart(swallowed: number): SeamStep {
    this.#state = 'swallowing';
    this.#kind = this.#options.echoes ? 'echo' : 'restart';
    this.#swallowed = swallowed;
    this.#held = '';
    return CLEAN;
  }

  #open(kind: SeamKind, rest: string): SeamStep {
    this.#kind = kind;
    this.#state = 'aligning';
    this.#held = '';
    return this.#align(rest);
  }

  /** The client has the trimmed characters already; the continuation may bring them again, whole or in part. */
  #align(text: string): SeamStep {
    this.#held += text;
    const rest = this.#held;
    const trimmed = this.#trimmed;
    const same = commonPrefixLength(rest, trimmed);
    if (same > 0 && this.#kind === 'clean') this.#kind = 'whitespace';
    if (same === rest.length && same < trimmed.length) return CLEAN;
    this.#state = 'open';
    this.#held = '';
    if (same === trimmed.length) return { emit: rest.slice(same) };
    const halfPair = trimmed.trim();
    if (halfPair !== '' && rest.startsWith(halfPair, same))
      return { emit: rest.slice(same + halfPair.length) };
    // Fewer line breaks than were shown are still the same break; other whitespace is the model's own.
    const isSameBreak = same === 0 || /^[\n\r]*$/.test(trimmed.slice(same));
    return { emit: isSameBreak && /^\S/.test(rest.slice(same)) ? rest.slice(same) : rest };
  }

  #reject(rejected: SeamRejection): SeamStep {
    this.#state = 'open';
    return { emit: '', rejected };
  }
}

/** What a model may take for the last word: everything since the last space, or only its letters. */
function lastWords(text: string): string[] {
  const tail = text.slice(-64);
  const words = [/\S*$/u, /[\p{L}\p{M}]*$/u].map((end) => tail.slice(tail.search(end)));
  return words.filter((word) => word.length >= WORD_CHARACTERS);
}

function insideFence(text: string): boolean {
  return ((text.match(/^```/gm)?.length ?? 0) & 1) === 1;
}

const mayOpenFence = (head: string): boolean => /^`{1,2}$|^```[^\s`]{0,32}$/.test(head);
