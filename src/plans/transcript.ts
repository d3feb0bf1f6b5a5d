import { speakable } from '../lib/text.ts';
import type { Delta, Usage } from './delta.ts';
import { foldProviderTool, type ProviderTool } from './provider-tools.ts';
import type { ToolCall } from './tool-call.ts';

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** What the model has said so far, across attempts: the fold of all deltas of a run. */
export class Transcript {
  text = '';
  refusal = '';
  reasoning = '';
  finish: string | undefined;
  usage: Usage | undefined;
  /** UTF-16 units held in memory, for the limit on a run's size. */
  size = 0;
  /** Read before every delta, so it is kept rather than filtered out. */
  openCalls: readonly ToolCall[] = [];
  readonly #toolCalls: Mutable<ToolCall>[] = [];
  readonly #providerTools: ProviderTool[] = [];
  /** The upstream whose words are folded, where that is known. */
  #upstream: string | undefined;

  static of(deltas: Iterable<Delta>): Transcript {
    const transcript = new Transcript();
    for (const delta of deltas) transcript.fold(delta);
    return transcript;
  }

  fold(delta: Delta): void {
    switch (delta.kind) {
      case 'text':
        this.text += delta.text;
        this.size += delta.text.length;
        if (this.#toolCalls.length > 0) this.#follow('text');
        return;
      case 'refusal':
        this.refusal += delta.text;
        this.size += delta.text.length;
        return;
      case 'reasoning':
        this.reasoning += delta.text;
        this.size += delta.text.length;
        return;
      case 'tool_start': {
        const { index, id, name } = delta;
        this.#follow('call');
        this.#toolCalls.push({ index, id, name, arguments: '', state: 'open', followed: undefined });
        this.#keepOpen();
        return;
      }
      case 'tool_arguments':
        this.#call(delta.index).arguments += delta.text;
        this.size += delta.text.length;
        return;
      case 'tool_close':
        this.#call(delta.index).state = 'closed';
        this.#keepOpen();
        return;
      case 'tool_cancel':
        this.#call(delta.index).state = 'cancelled';
        this.#keepOpen();
        return;
      case 'provider_tool_start':
        foldProviderTool(this.#providerTools, delta, this.text.length, this.#upstream);
        return;
      case 'provider_tool_end':
        foldProviderTool(this.#providerTools, delta, this.text.length, this.#upstream);
        this.size += JSON.stringify(delta.items).length;
        return;
      case 'segment':
        this.#upstream = delta.upstream;
        return;
      case 'finish':
        this.finish = delta.reason;
        return;
      case 'usage':
        this.usage = delta.usage;
    }
  }

  get toolCalls(): readonly ToolCall[] {
    return this.#toolCalls;
  }

  get closedCalls(): readonly ToolCall[] {
    return this.#toolCalls.filter((call) => call.state === 'closed');
  }

  /** No text came after a call that was not completed: the text ends where it began. */
  get callsComeNext(): boolean {
    return !this.#toolCalls.some(({ state, followed }) => state !== 'closed' && followed === 'text');
  }

  /** Tools that the provider ran for the answer, or runs. */
  get providerTools(): readonly ProviderTool[] {
    return this.#providerTools;
  }

  /** Text that a continuation could hang on: not white space alone, which some providers refuse, nor half a character. */
  get hasText(): boolean {
    return speakable(this.text).trim() !== '';
  }

  #follow(by: 'text' | 'call'): void {
    for (const call of this.#toolCalls) if (call.followed !== 'text') call.followed = by;
  }

  #keepOpen(): void {
    this.openCalls = this.#toolCalls.filter(({ state }) => state === 'open');
  }

  #call(index: number): Mutable<ToolCall> {
    const call = this.#toolCalls.find((candidate) => candidate.index === index);
    if (!call) throw new RangeError(`no tool call ${index} was started`);
    return call;
  }
}
