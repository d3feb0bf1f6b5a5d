import { AnchorJoint } from './anchor.ts';
import { ClaimedJoint } from './claimed-joint.ts';
import type { Joint, SeamKind, SeamRejection, Verdict } from './joint.ts';
import type { Mode, PrefillManner, Prefix } from './mode.ts';
import { PrefillJoint } from './prefill-joint.ts';
import { commonPrefixLength } from './repetition.ts';

/** `emit`: the new text. `rejected`: the attempt can't be joined and must not be shown. */
interface SeamStep {
  readonly emit: string;
  readonly rejected?: SeamRejection;
}

export interface SeamOptions {
  readonly mode: Mode;
  /** Everything the client was shown. */
  readonly delivered: string;
  readonly prefix: Prefix;
  /** How the target treats a prefix; `undefined` if unknown. */
  readonly manner: PrefillManner | undefined;
  /** The target has shown that manner itself; otherwise only its dialect claims it. */
  readonly isProven: boolean;
  /** No better way to ask is left, so doubtful text is delivered, and only impossible text is rejected. */
  readonly lastResort: boolean;
  /** Reject every seam that isn't proven, even if there is no better way to ask. */
  readonly strict: boolean;
}

/**
 * Joins the text of a continuation to the delivered text while it streams: holds back the head until its {@link Joint}
 * knows where the new part starts, then passes everything through.
 *
 * Facts about a target take precedence over guesses from its words. The middle of a continuation is never searched,
 * because losing a character is never the cheaper error.
 */
export class Seam {
  readonly #strict: boolean;
  /** `undefined` once the start of the new text is known. */
  #joint: Joint | undefined;
  #held = '';
  #kind: SeamKind = 'exact';
  #manner: PrefillManner | undefined;
  /**
   * Delivered text after the join, which the continuation may repeat in whole or in part. Empty once that is decided.
   */
  #shown = '';

  constructor(options: SeamOptions) {
    this.#strict = options.strict;
    if (options.delivered === '') return;
    this.#joint = jointOf(options);
    if (!this.#joint) this.#shown = options.prefix.trimmed;
  }

  /** The kind as known so far. */
  get kind(): SeamKind {
    return this.#kind;
  }

  /** How the target treated the prefix; `undefined` if the continuation leaves a doubt. */
  get manner(): PrefillManner | undefined {
    return this.#manner;
  }

  /** Text that is held back, or was held back when the attempt was rejected. */
  get held(): string {
    return this.#held;
  }

  /** True once all further text is new. */
  get isOpen(): boolean {
    return this.#joint === undefined && this.#shown === '';
  }

  push(text: string): SeamStep {
    if (this.isOpen) return { emit: text };
    const joint = this.#joint;
    if (!joint) return this.#align(text);
    const from = this.#held.length;
    this.#held += text;
    for (let place = from; place < this.#held.length; place++) {
      const verdict = joint.push(this.#held.charAt(place));
      if (verdict) return this.#follow(verdict);
    }
    return { emit: '' };
  }

  /** Joins what there is, because no more text will come. `callsFollow`: tool calls come next. */
  end(callsFollow = false): SeamStep {
    return this.#joint ? this.#follow(this.#joint.end(callsFollow)) : { emit: '' };
  }

  /**
   * Joins what there is, because a call starts and ends the text before it. Later text is independent of what was
   * delivered, unless a known text is still being repeated.
   */
  release(): SeamStep {
    if (this.#joint instanceof KnownJoint) return { emit: '' };
    const step = this.end(true);
    this.#shown = '';
    return step;
  }

  #follow(verdict: Verdict): SeamStep {
    this.#joint = undefined;
    this.#manner = verdict.shows;
    if ('rejected' in verdict) return { emit: '', rejected: verdict.rejected };
    if (verdict.kind === 'unanchored' && this.#strict) return { emit: '', rejected: 'unanchored' };
    this.#kind = verdict.kind;
    this.#shown = verdict.shown;
    const rest = this.#held.slice(verdict.taken);
    this.#held = '';
    return this.#align(rest);
  }

  /** Removes characters that the client already has, if the continuation brings them again. */
  #align(text: string): SeamStep {
    this.#held += text;
    const rest = this.#held;
    const shown = this.#shown;
    const same = commonPrefixLength(rest, shown);
    if (same === rest.length && same < shown.length) return { emit: '' };
    this.#shown = '';
    this.#held = '';
    return { emit: rest.slice(same === shown.length ? same : shownAgain(rest, shown, same)) };
  }
}

function jointOf({ mode, delivered, prefix, manner, isProven, lastResort }: SeamOptions): Joint | undefined {
  const known = { shown: '', mayBeginBlank: false, slack: 0 };
  switch (mode) {
    case 'resume':
      return undefined;
    case 'replay': {
      const slack = delivered.length - prefix.sent.length;
      return new KnownJoint({ ...known, text: delivered, otherwise: 'diverged', slack });
    }
    case 'restart':
      return new KnownJoint({ ...known, text: delivered, otherwise: 'new' });
    case 'nudge':
      return new AnchorJoint(delivered, lastResort);
    case 'prefill': {
      if (manner === 'exact') return isProven || lastResort ? undefined : new ClaimedJoint(prefix);
      if (manner !== 'echo') return new PrefillJoint(prefix, lastResort);
      const text = prefix.sent.trimStart();
      return new KnownJoint({
        ...known,
        text,
        shown: prefix.trimmed,
        mayBeginBlank: true,
        otherwise: 'diverged',
      });
    }
  }
}

/**
 * How many characters of `rest` the client already has, if `rest` doesn't repeat all of `shown`: after `same`
 * characters, the two differ.
 */
function shownAgain(rest: string, shown: string, same: number): number {
  // Half a surrogate pair was shown, so the whole one starts with it.
  const half = shown.trim();
  if (half !== '' && rest.startsWith(half, same)) return same + half.length;
  // Fewer line breaks than were shown are still the same break; other white space is the model's own.
  const isSameBreak = same === 0 || /^[\n\r]*$/.test(shown.slice(same));
  return isSameBreak && /^\S/.test(rest.slice(same)) ? same : 0;
}

interface Known {
  /** What the continuation repeats first. */
  readonly text: string;
  /** Delivered after {@link text}; may or may not be repeated. */
  readonly shown: string;
  /** The provider may put white space in front of {@link text}. */
  readonly mayBeginBlank: boolean;
  /** The verdict if anything else comes: the attempt can't be joined, or all of it is new. */
  readonly otherwise: SeamRejection | 'new';
  /** How many characters before the end of {@link text} the answer may end. */
  readonly slack: number;
}

/** For continuations that first repeat a known text: an echo of the prefix, or a replay of the whole answer. */
class KnownJoint implements Joint {
  readonly #known: Known;
  #taken = 0;
  #said = 0;

  constructor(known: Known) {
    this.#known = known;
  }

  push(character: string): Verdict | undefined {
    const { text, shown, mayBeginBlank, otherwise } = this.#known;
    if (this.#said === 0 && mayBeginBlank && character.trim() === '' && text.charAt(0) !== character) {
      this.#taken++;
      return undefined;
    }
    if (text.charAt(this.#said) !== character)
      return otherwise === 'new' ? { kind: 'exact', taken: this.#taken, shown: '' } : { rejected: otherwise };
    this.#taken++;
    this.#said++;
    return this.#said === text.length ? { kind: 'exact', taken: this.#taken, shown } : undefined;
  }

  end(): Verdict {
    const { text, otherwise, slack } = this.#known;
    const isComplete = otherwise === 'new' || this.#said >= text.length - slack;
    return isComplete ? { kind: 'exact', taken: this.#taken, shown: '' } : { rejected: 'ended_early' };
  }
}
