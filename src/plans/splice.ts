import { CallReplay } from './call-replay.ts';
import { type Delta, isUsage, type ToolDelta } from './delta.ts';
import type { SeamKind, SeamRejection } from './seam/joint.ts';
import type { PrefillManner } from './seam/mode.ts';
import { commonPrefixLength } from './seam/repetition.ts';
import { Seam, type SeamOptions } from './seam/seam.ts';
import { StopMatcher, TokenLimit } from './stop-conditions.ts';
import type { ToolCall } from './tool-call.ts';

export interface SpliceOptions extends Omit<SeamOptions, 'delivered'> {
  /** What the client had received before this attempt. */
  readonly delivered: { readonly text: string; readonly reasoning: string };
  /**
   * How to treat the reasoning of a restart if the client has reasoning items: after a `cut` item all of it is shown,
   * after `whole` items none. Otherwise only an exact continuation of the seen reasoning passes.
   */
  readonly thoughts?: 'whole' | 'cut' | undefined;
  /** The dialect received the reasoning too, and continues it. */
  readonly continuesReasoning: boolean;
  readonly stops: readonly string[];
  /** Tokens left to the client, if the request allows extra tokens for a repeated anchor. */
  readonly token_limit?: number;
  /** The calls that the client has seen, if the attempt repeats them. */
  readonly calls?: readonly ToolCall[];
  /** Text before a call is complete when the call begins, and is shown before it. */
  readonly ordered?: boolean;
}

const NONE: readonly Delta[] = [];

/**
 * Turns the deltas of a continuation into deltas of the run by removing what the client has already seen. One splice
 * per attempt; a run's first attempt needs none.
 */
export class Splice {
  readonly #options: SpliceOptions;
  readonly #seam: Seam;
  /** Undefined if the client sent no stop sequences. */
  readonly #stop: StopMatcher | undefined;
  #limit: TokenLimit | undefined;
  #reasoning: 'matching' | 'swallowing' | 'passing';
  /** Characters of the delivered reasoning that have been repeated. */
  #matched = 0;
  #rejection: SeamRejection | undefined;
  #stopReason: 'stop' | 'length' | undefined;
  /** The attempt has begun a tool call. */
  #calls = false;
  /** Reasoning was dropped. */
  #thinks = false;
  #hasText = false;
  /** Undefined if calls are not repeated. */
  #replay: CallReplay | undefined;

  constructor(options: SpliceOptions) {
    this.#options = options;
    this.#seam = new Seam({ ...options, delivered: options.delivered.text });
    if (options.stops.length > 0) this.#stop = new StopMatcher(options.stops, options.delivered.text);
    if (options.calls) this.#replay = new CallReplay(options.calls);
    if (options.token_limit !== undefined) this.#limit = new TokenLimit(options.token_limit);
    const seenReasoning = options.delivered.reasoning !== '';
    // A replayed answer repeats the same reasoning, before and after its text.
    if (options.mode === 'replay' && seenReasoning) this.#reasoning = 'matching';
    else if (options.mode === 'restart')
      this.#reasoning = seenReasoning ? RESTARTED[options.thoughts ?? 'unknown'] : 'passing';
    // Text has begun, so reasoning would appear in the middle of the answer.
    else
      this.#reasoning =
        options.continuesReasoning && options.delivered.text === '' ? 'passing' : 'swallowing';
  }

  get seam(): SeamKind {
    return this.#seam.kind;
  }

  /** How the target treats a prefix, as this attempt has shown; `undefined` if in doubt. */
  get manner(): PrefillManner | undefined {
    return this.#seam.manner;
  }

  /** The text that the client had received before this attempt. */
  get delivered(): string {
    return this.#options.delivered.text;
  }

  /** The held-back text of a rejected attempt. */
  get rejectedHead(): string {
    return this.#rejection === undefined ? '' : this.#seam.held;
  }

  get rejection(): SeamRejection | undefined {
    return this.#rejection;
  }

  /** Why the answer is over: a stop sequence matched across the seam, or the client's limit is reached. */
  get stopReason(): 'stop' | 'length' | undefined {
    return this.#stopReason;
  }

  /** The stop sequence that matched. */
  get stopSequence(): string | undefined {
    return this.#stop?.matched;
  }

  /** Everything from here on is new and may pass unchanged. */
  get isOpen(): boolean {
    const passes = this.#reasoning === 'passing' || this.#hasRethought;
    return this.#seam.isOpen && passes && !this.#stopReason && !this.#isRepeating;
  }

  /**
   * The new part of one event's deltas; the same array if all of it is new. `undefined` once the client's limit is
   * reached. `isAside`: the deltas come from provider tools, beside the text.
   */
  join(told: readonly Delta[], isAside: boolean): readonly Delta[] | undefined {
    // During a continuation, running usage reports cover less than the last one shown.
    const said = told.some(isUsage) ? told.filter((delta) => !isUsage(delta)) : told;
    // Repeated calls keep the indices that the client knows.
    if (this.isOpen && !this.#replay?.concerns(said)) return this.allows(said) ? said : undefined;
    return isAside ? said : said.flatMap((delta) => this.accept(delta));
  }

  /** Whether these deltas, which pass unchanged, fit the client's limit. If not, the answer is over. */
  allows(deltas: readonly Delta[]): boolean {
    const limit = this.#limit;
    if (!limit) return true;
    for (const delta of deltas) {
      if (delta.kind !== 'text') continue;
      if (!this.#hasRoomFor(delta.text)) return false;
      limit.show(delta.text.length);
    }
    return true;
  }

  accept(delta: Delta): readonly Delta[] {
    if (this.#isOver) return NONE;
    switch (delta.kind) {
      case 'reasoning':
        return this.#acceptReasoning(delta.text);
      case 'text': {
        this.#hasText = true;
        if (!this.#hasRoomFor(delta.text)) return this.#endStop();
        const text = this.#text(this.#seam.push(delta.text));
        // The client has seen a call after its part of the text.
        if (text.length > 0 && this.#isRepeating) return this.#reject('diverged');
        if (this.#seam.isOpen) this.#showThoughts();
        if (this.#seam.isOpen && this.seam === 'anchored') this.#limit = undefined;
        return text;
      }
      case 'tool_start':
      case 'tool_arguments':
      case 'tool_close':
        return this.#acceptCall(delta);
      default:
        return [delta];
    }
  }

  /** Something other than text begins, which completes the text before it: releases that text. */
  interject(): readonly Delta[] {
    this.#calls = true;
    const text = this.#text(this.#seam.release());
    if (this.#isOver || !this.#seam.isOpen) return text;
    this.#showThoughts();
    return [...text, ...this.#endStop()];
  }

  #acceptCall(delta: ToolDelta): readonly Delta[] {
    const said = this.#replay?.accept(delta) ?? [delta];
    if (typeof said === 'string') return this.#reject(said);
    // The last call that the client has seen is repeated, and with it everything the client has.
    if (said.length === 0 && this.#seam.isOpen && !this.#isRepeating) this.#showThoughts();
    if (delta.kind !== 'tool_start' || said.length === 0) return said;
    this.#calls = true;
    if (this.#options.ordered) return this.#afterText(delta);
    // Held-back text keeps its place among the text; to a client, calls are separate from it.
    this.#showThoughts();
    return said;
  }

  /** Emits the held-back text, then the call. */
  #afterText(call: Delta): readonly Delta[] {
    const text = this.interject();
    return this.#isOver ? text : [...text, call];
  }

  /** The text is complete: releases held-back text, or finds that the answer doesn't join. */
  end(): readonly Delta[] {
    const joined = this.#text(this.#seam.end(this.#calls));
    if (this.#isRepeating) this.#rejection ??= 'ended_early';
    if (this.#isOver) return joined;
    // If a target puts the prefix into the reasoning, the model continues the answer there.
    const isLost = this.#thinks && !this.#hasText && !this.#calls;
    if (this.#options.mode === 'prefill' && isLost) {
      this.#rejection = 'no_continuation';
      return NONE;
    }
    return [...joined, ...this.#endStop()];
  }

  #hasRoomFor(text: string): boolean {
    if (this.#limit?.isReached) this.#stopReason = 'length';
    else this.#limit?.arrive(text.length);
    return this.#stopReason === undefined;
  }

  /** Some calls that the client has seen have not been repeated yet. */
  get #isRepeating(): boolean {
    return this.#replay?.isOver === false;
  }

  /** In a replayed answer, the reasoning so far matches what the client has seen. */
  get #isRethinking(): boolean {
    return this.#options.mode === 'replay' && this.#reasoning === 'matching';
  }

  get #hasRethought(): boolean {
    return this.#isRethinking && this.#matched === this.#options.delivered.reasoning.length;
  }

  /** Lets further reasoning pass as new, unless the seen reasoning is still to be repeated. */
  #showThoughts(): void {
    if (!this.#isRethinking) this.#reasoning = 'passing';
  }

  #reject(reason: SeamRejection): readonly Delta[] {
    this.#rejection ??= reason;
    return NONE;
  }

  get #isOver(): boolean {
    return this.#rejection !== undefined || this.#stopReason !== undefined;
  }

  #text({ emit, rejected }: { emit: string; rejected?: SeamRejection }): readonly Delta[] {
    if (rejected) this.#rejection ??= rejected;
    if (emit === '') return NONE;
    this.#limit?.show(emit.length);
    const shown = this.#stop ? this.#stop.push(emit) : { emit, stopped: false };
    if (shown.stopped) this.#stopReason = 'stop';
    return textOf(shown.emit);
  }

  /** Text held back because it could have been the beginning of a stop sequence. */
  #endStop(): readonly Delta[] {
    return textOf(this.#stop?.end() ?? '');
  }

  /** While matching, reasoning passes only as the exact continuation of what was seen. */
  #acceptReasoning(text: string): readonly Delta[] {
    const more = this.#newReasoning(text);
    // The client has seen a call after its part of the reasoning.
    return more === '' || this.#isRepeating ? NONE : [{ kind: 'reasoning', text: more }];
  }

  #newReasoning(text: string): string {
    if (this.#reasoning === 'passing') return text;
    if (this.#reasoning === 'swallowing') {
      this.#thinks = true;
      return '';
    }
    const expected = this.#options.delivered.reasoning.slice(this.#matched);
    const same = commonPrefixLength(text, expected);
    this.#matched += same;
    if (same === text.length) return '';
    // Additional reasoning would appear after the text it belongs before.
    const isNew = same === expected.length && (this.#seam.isOpen || this.#options.mode !== 'replay');
    this.#reasoning = isNew ? 'passing' : 'swallowing';
    return this.#reasoning === 'passing' ? text.slice(same) : '';
  }
}

const RESTARTED = { whole: 'swallowing', cut: 'passing', unknown: 'matching' } as const;

const textOf = (text: string): readonly Delta[] => (text === '' ? NONE : [{ kind: 'text', text }]);
