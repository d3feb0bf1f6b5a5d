import { CallReplay } from './call-replay.ts';
import { type Delta, isUsage, type ToolDelta } from './delta.ts';
import type { SeamKind, SeamRejection } from './seam/joint.ts';
import type { PrefillManner } from './seam/mode.ts';
import { commonPrefixLength } from './seam/repetition.ts';
import { Seam, type SeamOptions } from './seam/seam.ts';
import { StopMatcher, TokenLimit } from './stop-conditions.ts';
import type { ToolCall } from './tool-call.ts';

export interface SpliceOptions extends Omit<SeamOptions, 'delivered'> {
  /** What the client was shown before this attempt. */
  readonly delivered: { readonly text: string; readonly reasoning: string };
  /**
   * How a restart treats its reasoning where the client has items of it: beside those that were `cut` all of it is shown,
   * after `whole` ones nothing. Otherwise it is let through as the exact continuation of what was seen.
   */
  readonly thoughts?: 'whole' | 'cut' | undefined;
  /** The dialect was sent the reasoning too and continues it. */
  readonly continuesReasoning: boolean;
  readonly stops: readonly string[];
  /** Tokens that the client has left, where the request allows more for an anchor to be repeated. */
  readonly token_limit?: number;
  /** The calls that the client has seen, where the attempt makes them again. */
  readonly calls?: readonly ToolCall[];
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
  /** Undefined where the client has named no stop sequences. */
  readonly #stop: StopMatcher | undefined;
  #limit: TokenLimit | undefined;
  #reasoning: 'matching' | 'swallowing' | 'passing';
  /** How much of the delivered reasoning has come again. */
  #matched = 0;
  #rejection: SeamRejection | undefined;
  #stopReason: 'stop' | 'length' | undefined;
  /** The attempt has begun a tool call. */
  #calls = false;
  /** Reasoning was left out. */
  #thinks = false;
  #hasText = false;
  /** Undefined where calls are not made again. */
  #replay: CallReplay | undefined;

  constructor(options: SpliceOptions) {
    this.#options = options;
    this.#seam = new Seam({ ...options, delivered: options.delivered.text });
    if (options.stops.length > 0) this.#stop = new StopMatcher(options.stops, options.delivered.text);
    if (options.calls) this.#replay = new CallReplay(options.calls);
    if (options.token_limit !== undefined) this.#limit = new TokenLimit(options.token_limit);
    const seenReasoning = options.delivered.reasoning !== '';
    // The same answer has the same thoughts, before its text and behind it.
    if (options.mode === 'replay' && seenReasoning) this.#reasoning = 'matching';
    else if (options.mode === 'restart')
      this.#reasoning = seenReasoning ? RESTARTED[options.thoughts ?? 'unknown'] : 'passing';
    // Text has begun: reasoning that comes now would appear in the middle of the answer.
    else
      this.#reasoning =
        options.continuesReasoning && options.delivered.text === '' ? 'passing' : 'swallowing';
  }

  get seam(): SeamKind {
    return this.#seam.kind;
  }

  /** What the attempt has shown the target to make of a prefix; `undefined` if it leaves a doubt. */
  get manner(): PrefillManner | undefined {
    return this.#seam.manner;
  }

  /** The text that the client was shown before this attempt. */
  get delivered(): string {
    return this.#options.delivered.text;
  }

  /** What was said, where it was rejected. */
  get rejectedHead(): string {
    return this.#rejection === undefined ? '' : this.#seam.held;
  }

  get rejection(): SeamRejection | undefined {
    return this.#rejection;
  }

  /** Why the answer is over: a stop sequence ended across the seam, or the client's limit is reached. */
  get stopReason(): 'stop' | 'length' | undefined {
    return this.#stopReason;
  }

  /** The stop sequence that ended it. */
  get stopSequence(): string | undefined {
    return this.#stop?.matched;
  }

  /** Everything that comes from now on is new and may pass unchanged. */
  get isOpen(): boolean {
    const passes = this.#reasoning === 'passing' || this.#hasRethought;
    return this.#seam.isOpen && passes && !this.#stopReason && !this.#isRepeating;
  }

  /**
   * What is new of the deltas of one event: the same array where all of it is. `undefined` where the client's limit allows no
   * more. `isAside`: they are what the provider does beside the text.
   */
  join(told: readonly Delta[], isAside: boolean): readonly Delta[] | undefined {
    // While an attempt continues an answer, its running usage report covers less than the last one that was shown.
    const said = told.some(isUsage) ? told.filter((delta) => !isUsage(delta)) : told;
    // Calls that are made again keep the numbers that the client knows them by.
    if (this.isOpen && !this.#replay?.concerns(said)) return this.allows(said) ? said : undefined;
    return isAside ? said : said.flatMap((delta) => this.accept(delta));
  }

  /** Whether the client's limit has room for these deltas, which pass unchanged. Where it has none, the answer is over. */
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
        // The client has seen a call behind what it has of the text.
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

  /** Something that is no text begins: gives out the text before it, which has ended. */
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
    // The last call that the client has seen has come again, and with it everything that the client has.
    if (said.length === 0 && this.#seam.isOpen && !this.#isRepeating) this.#showThoughts();
    if (delta.kind !== 'tool_start' || said.length === 0) return said;
    this.#calls = true;
    if (this.#options.ordered) return this.#afterText(delta);
    // Text that is still held back keeps its place among the text; to a client, calls are beside it.
    this.#showThoughts();
    return said;
  }

  /** A call, after the text that was held back until it began. */
  #afterText(call: Delta): readonly Delta[] {
    const text = this.interject();
    return this.#isOver ? text : [...text, call];
  }

  /** No more text will come: gives out what was held back, or finds that the answer does not join. */
  end(): readonly Delta[] {
    const joined = this.#text(this.#seam.end(this.#calls));
    if (this.#isRepeating) this.#rejection ??= 'ended_early';
    if (this.#isOver) return joined;
    // Where the prefix was put among its thoughts, a model says the rest of the answer as one of them.
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

  /** Calls that the client has seen are still to come again. */
  get #isRepeating(): boolean {
    return this.#replay?.isOver === false;
  }

  /** In an answer that is made again: the thoughts that the client has seen come again, or have come again. */
  get #isRethinking(): boolean {
    return this.#options.mode === 'replay' && this.#reasoning === 'matching';
  }

  get #hasRethought(): boolean {
    return this.#isRethinking && this.#matched === this.#options.delivered.reasoning.length;
  }

  /** Thoughts that come from now on are new, unless those that the client has seen are still to come again. */
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

  /** What was held back because a stop sequence could have begun with it. */
  #endStop(): readonly Delta[] {
    return textOf(this.#stop?.end() ?? '');
  }

  /** Reasoning that is matched is let through only as the exact continuation of what was seen. */
  #acceptReasoning(text: string): readonly Delta[] {
    const more = this.#newReasoning(text);
    // The client has seen a call behind what it has of the thoughts.
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
    // More thoughts than were shown before the text would appear behind it.
    const isNew = same === expected.length && (this.#seam.isOpen || this.#options.mode !== 'replay');
    this.#reasoning = isNew ? 'passing' : 'swallowing';
    return this.#reasoning === 'passing' ? text.slice(same) : '';
  }
}

const RESTARTED = { whole: 'swallowing', cut: 'passing', unknown: 'matching' } as const;

const textOf = (text: string): readonly Delta[] => (text === '' ? NONE : [{ kind: 'text', text }]);
