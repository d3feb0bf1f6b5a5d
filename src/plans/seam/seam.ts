import { AnchorJoint } from './anchor.ts';
import { ClaimedJoint } from './claimed-joint.ts';
import type { Joint, SeamKind, SeamRejection, Verdict } from './joint.ts';
import type { Mode, PrefillManner, Prefix } from './mode.ts';
import { PrefillJoint } from './prefill-joint.ts';
import { commonPrefixLength } from './repetition.ts';

/** `emit` is what is new; `rejected` means that the attempt cannot be joined and must not be shown. */
interface SeamStep {
  readonly emit: string;
  readonly rejected?: SeamRejection;
}

export interface SeamOptions {
  readonly mode: Mode;
  /** Everything the client was shown. */
  readonly delivered: string;
  readonly prefix: Prefix;
  /** What the target makes of a prefix; `undefined` while that is not known. */
  readonly manner: PrefillManner | undefined;
  /** The target has shown that manner itself; otherwise its dialect claims it. */
  readonly isProven: boolean;
  /** No better way to ask is left: what is uncertain is delivered, and what cannot be is rejected. */
  readonly lastResort: boolean;
  /** A seam that does not prove itself is rejected, whether or not there is a better way. */
  readonly strict: boolean;
}

/**
 * Joins the text of a continuation to the text that was delivered. Streaming: holds back the head until its {@link Joint}
 * knows where the new part begins, then lets everything through.
 *
 * What is known of a target comes before everything that could be guessed from its words, and nothing is ever searched for
 * in the middle of a continuation: losing a character is never the cheaper error.
 */
export class Seam {
  readonly #strict: boolean;
  /** `undefined` once it is known where the new text begins. */
  #joint: Joint | undefined;
  #held = '';
  #kind: SeamKind = 'exact';
  #manner: PrefillManner | undefined;
  /** Delivered behind what the continuation follows: it may come again, whole or in part. Empty once that is over. */
  #shown = '';

  constructor(options: SeamOptions) {
    this.#strict = options.strict;
    if (options.delivered === '') return;
    this.#joint = jointOf(options);
    if (!this.#joint) this.#shown = options.prefix.trimmed;
  }

  /** What is known of the seam so far. */
  get kind(): SeamKind {
    return this.#kind;
  }

  /** What the continuation has shown its target to make of a prefix; `undefined` if it leaves a doubt. */
  get manner(): PrefillManner | undefined {
    return this.#manner;
  }

  /** What is held back, or was when the attempt was rejected. */
  get held(): string {
    return this.#held;
  }

  /** True once everything that comes is new. */
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

  /** No more text will come: joins with what there is. `callsFollow`: the rest is, or continues with, tool calls. */
  end(callsFollow = false): SeamStep {
    return this.#joint ? this.#follow(this.#joint.end(callsFollow)) : { emit: '' };
  }

  /**
   * A call begins, and the text before it has ended: joins with what there is. Whatever text comes from now on is beside
   * what was delivered, unless that is still being repeated.
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

  /** The client has these characters already; the continuation may bring them again. */
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
 * How much of `rest` the client has, where that is not all that was `shown`: `same` characters of it come again, and then
 * something else.
 */
function shownAgain(rest: string, shown: string, same: number): number {
  // Half a surrogate pair was shown: the whole one begins with it.
  const half = shown.trim();
  if (half !== '' && rest.startsWith(half, same)) return same + half.length;
  // Fewer line breaks than were shown are still the same break; other white space is the model's own.
  const isSameBreak = same === 0 || /^[\n\r]*$/.test(shown.slice(same));
  return isSameBreak && /^\S/.test(rest.slice(same)) ? same : 0;
}

interface Known {
  /** What is said again first, as far as it is known. */
  readonly text: string;
  /** Delivered behind it: may be said again or not. */
  readonly shown: string;
  /** White space in front of it is the provider's. */
  readonly mayBeginBlank: boolean;
  /** What it means when something else comes: that the attempt cannot be joined, or that all of it is new. */
  readonly otherwise: SeamRejection | 'new';
  /** The answer may end so far before the end of {@link text}. */
  readonly slack: number;
}

/** For continuations that first repeat a known text: an echo of the prefix, a replay of the whole answer. */
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
