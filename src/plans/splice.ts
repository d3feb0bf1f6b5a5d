import type { Mode, Prefix } from './continuation.ts';
import type { Delta } from './delta.ts';
import { commonPrefixLength } from './overlap.ts';
import { Seam, type SeamKind, type SeamRejection } from './seam.ts';
import { StopMatcher } from './stop-matcher.ts';

export interface SpliceOptions {
  readonly mode: Mode;
  /** Text, refusal and reasoning the client was shown before this attempt. */
  readonly delivered: { readonly text: string; readonly reasoning: string };
  readonly prefix: Prefix;
  /** The dialect repeats the prefix at the start of its answer. */
  readonly echoes: boolean;
  /** The dialect was sent the reasoning too and goes on with it. */
  readonly continuesReasoning: boolean;
  readonly stops: readonly string[];
  /** Text that comes before a call has ended when the call begins, and is shown before it. */
  readonly ordered?: boolean;
}

const NONE: readonly Delta[] = [];

/**
 * Turns the deltas of a continuation into deltas of the run: takes out what the client has seen already.
 * One splice per attempt; the first attempt of a run needs none.
 */
export class Splice {
  readonly #options: SpliceOptions;
  readonly #seam: Seam;
  readonly #stop: StopMatcher;
  #reasoning: 'matching' | 'swallowing' | 'passing';
  /** How much of the delivered reasoning has come again. */
  #matched = 0;
  #rejection: SeamRejection | undefined;
  #stopped = false;
  /** The attempt has begun a tool call. */
  #calls = false;
  /** Reasoning was left out. */
  #thinks = false;
  #hasText = false;

  constructor(options: SpliceOptions) {
    this.#options = options;
    this.#seam = new Seam({
      mode: options.mode,
      delivered: options.delivered.text,
      prefix: options.prefix,
      echoes: options.echoes,
    });
    this.#stop = new StopMatcher(options.stops, options.delivered.text);
    const seenReasoning = options.delivered.reasoning !== '';
    if (options.mode === 'restart') this.#reasoning = seenReasoning ? 'matching' : 'passing';
    // Text has begun: reasoning that comes now would appear in the middle of the answer.
    else
      this.#reasoning =
        options.continuesReasoning && options.delivered.text === '' ? 'passing' : 'swallowing';
  }

  get seam(): SeamKind {
    return this.#seam.kind;
  }

  get rejection(): SeamRejection | undefined {
    return this.#rejection;
  }

  /** A stop sequence ended across the seam: the answer is over. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** The stop sequence that did it. */
  get stopSequence(): string | undefined {
    return this.#stop.matched;
  }

  /** Everything that comes from now on is new and may pass unchanged. */
  get isOpen(): boolean {
    return this.#seam.isOpen && this.#reasoning === 'passing' && !this.#stopped;
  }

  accept(delta: Delta): readonly Delta[] {
    if (this.#isOver) return NONE;
    switch (delta.kind) {
      case 'reasoning':
        return this.#acceptReasoning(delta.text);
      case 'text': {
        this.#hasText = true;
        const text = this.#text(this.#seam.push(delta.text));
        if (this.#seam.isOpen) this.#reasoning = 'passing';
        return text;
      }
      case 'tool_start':
        this.#calls = true;
        if (this.#options.ordered) return this.#afterText(delta);
        // Text that is still held back keeps its place among the text; to a client, calls are beside it.
        this.#reasoning = 'passing';
        return [delta];
      default:
        return [delta];
    }
  }

  /** A call, after the text that was held back until it began. */
  #afterText(call: Delta): readonly Delta[] {
    const text = this.#text(this.#seam.release());
    if (this.#isOver) return text;
    if (!this.#seam.isOpen) return [...text, call];
    this.#reasoning = 'passing';
    return [...text, ...textOf(this.#stop.end()), call];
  }

  /** No more text will come: gives out what was held back, or finds that the answer does not join. */
  end(): readonly Delta[] {
    const joined = this.#text(this.#seam.end(this.#calls));
    if (this.#isOver) return joined;
    // Where the prefix was put among its thoughts, a model says the rest of the answer as one of them.
    const isLost = this.#thinks && !this.#hasText && !this.#calls;
    if (this.#options.mode === 'prefill' && isLost) {
      this.#rejection = 'no_continuation';
      return NONE;
    }
    return [...joined, ...textOf(this.#stop.end())];
  }

  get #isOver(): boolean {
    return this.#rejection !== undefined || this.#stopped;
  }

  #text({ emit, rejected }: { emit: string; rejected?: SeamRejection }): readonly Delta[] {
    if (rejected) this.#rejection ??= rejected;
    if (emit === '') return NONE;
    const stop = this.#stop.push(emit);
    this.#stopped = stop.stopped;
    return stop.emit === '' ? NONE : [{ kind: 'text', text: stop.emit }];
  }

  /** Regenerated reasoning is let through only as the exact continuation of what was seen. */
  #acceptReasoning(text: string): readonly Delta[] {
    if (this.#reasoning === 'passing') return [{ kind: 'reasoning', text }];
    if (this.#reasoning === 'swallowing') {
      this.#thinks = true;
      return NONE;
    }
    const expected = this.#options.delivered.reasoning.slice(this.#matched);
    const same = commonPrefixLength(text, expected);
    this.#matched += same;
    if (same === text.length) return NONE;
    this.#reasoning = same === expected.length ? 'passing' : 'swallowing';
    return this.#reasoning === 'passing' ? [{ kind: 'reasoning', text: text.slice(same) }] : NONE;
  }
}

const textOf = (text: string): readonly Delta[] => (text === '' ? NONE : [{ kind: 'text', text }]);
