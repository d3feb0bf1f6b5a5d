import { speakable } from '../lib/text.ts';
import type { Delta, Usage } from './delta.ts';
import type { ToolCall } from './tool-call.ts';

/** What a call weighs besides its text: every delta has to look for the calls that are open. */
const CALL_OVERHEAD_UNITS = 1024;

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** What the model has said so far, across attempts: the fold of all deltas of a run. */
export class Transcript {
  text = '';
  refusal = '';
  reasoning = '';
  finish: string | undefined;
  usage: Usage | undefined;
  /** UTF-16 units that the model has said. */
  size = 0;
  /** Read before every delta, so it is kept rather than filtered out. */
  openCalls: readonly ToolCall[] = [];
  readonly #toolCalls: Mutable<ToolCall>[] = [];
  /** The first call that no text has followed yet. */
  #textless = 0;
  /** UTF-16 units that calls take besides their arguments. */
  #calls_size = 0;
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
        while (this.#textless < this.#toolCalls.length) this.#follow(this.#textless++);
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
        this.#calls_size += id.length + name.length + CALL_OVERHEAD_UNITS;
        const latest = this.#toolCalls.at(-1);
        if (latest) latest.followed ??= 'call';
        const call: ToolCall = { index, id, name, arguments: '', state: 'open', followed: undefined };
        this.#toolCalls.push(call);
        this.openCalls = [...this.openCalls, call];
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

  /** UTF-16 units held in memory, for the limit on a run's size: calls count, even if nothing is said in them. */
  get held_size(): number {
    return this.size + this.#calls_size;
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

  #follow(position: number): void {
    const call = this.#toolCalls[position];
    if (call) call.followed = 'text';
  }

  #keepOpen(): void {
    this.openCalls = this.openCalls.filter(({ state }) => state === 'open');
  }

  #call(index: number): Mutable<ToolCall> {
    // Most deltas are about the latest call.
    const call = this.#toolCalls.findLast((candidate) => candidate.index === index);
    if (!call) throw new RangeError(`no tool call ${index} was started`);
    return call;
  }
}

/** A tool that the provider ran, or runs: it must not run again. */
export interface ProviderTool {
  readonly id: string;
  readonly name: string;
  /** `running`: its result has not come, so it is not known whether it has had its effect. */
  readonly state: 'running' | 'settled';
  /** UTF-16 units of the answer's text that came before it. */
  readonly offset: number;
  /** The configured name of the upstream whose provider ran it, where that is known. */
  readonly upstream?: string;
  /** Its use and its result as the provider takes them back; empty while it runs. */
  readonly items: readonly object[];
}

type Start = Extract<Delta, { kind: 'provider_tool_start' }>;
type End = Extract<Delta, { kind: 'provider_tool_end' }>;

export const isOfProviderTool = ({ kind }: Delta): boolean =>
  kind === 'provider_tool_start' || kind === 'provider_tool_end';

/**
 * Adds what a delta says to the tools that the provider ran for one answer, which are in the order in which they began. A
 * result whose use was never announced is one all the same.
 */
export function foldProviderTool(
  tools: ProviderTool[],
  delta: Start | End,
  offset: number,
  upstream: string | undefined,
): void {
  const { id, name } = delta;
  const ended = delta.kind === 'provider_tool_end' && ({ state: 'settled', items: delta.items } as const);
  const place = ended ? tools.findLastIndex((tool) => tool.id === id && tool.state === 'running') : -1;
  const begun = tools[place] ?? { id, name, offset, ...(upstream !== undefined && { upstream }) };
  tools.splice(place === -1 ? tools.length : place, 1, { state: 'running', items: [], ...begun, ...ended });
}

/** An answer as it is given back to its provider in parts, because tools ran in the middle of it. */
export interface AnswerGivenBack {
  /** In order: text, and what the provider takes back of a tool. */
  readonly before: readonly (string | readonly object[])[];
  /** The text after the last of the tools, which the rest continues. */
  readonly tail: string;
}

export function givenBack(text: string, tools: readonly ProviderTool[]): AnswerGivenBack {
  let from = 0;
  const before = tools.flatMap(({ offset, items }) => {
    const said = text.slice(from, offset);
    from = offset;
    return said.trim() === '' ? [items] : [said, items];
  });
  return { before, tail: text.slice(from) };
}
