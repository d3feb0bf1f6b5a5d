import { speakable } from '../lib/text.ts';
import { type ArgumentsContent, CallArguments } from './call-arguments.ts';
import type { Delta, Usage } from './delta.ts';
import type { ToolCall } from './tool-call.ts';

/** What a call, or a tool that the provider runs, takes in memory besides its text. */
export const CALL_OVERHEAD_BYTES = 1024;

/** A UTF-16 unit takes no more in UTF-8. */
const BYTES_PER_UNIT_MAX = 3;

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
  readonly #toolCalls: Mutable<ToolCall>[] = [];
  /** The latest of each index. */
  readonly #byIndex = new Map<number, Mutable<ToolCall>>();
  /** Those that are open, in the order in which they began. */
  readonly #open = new Map<ToolCall, CallArguments>();
  /** The same as a list, until one more is open or one less. */
  #openList: readonly ToolCall[] | undefined;
  /** The first call that no text has followed yet. */
  #textless = 0;
  /** UTF-16 units of what names calls, and bytes that calls take besides. */
  #names_size = 0;
  #calls_bytes = 0;
  /** What was said in UTF-8. Counted once it could matter: to measure every piece costs more than to fold it. */
  #said_bytes: number | undefined;
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
        this.#grow(delta.text);
        while (this.#textless < this.#toolCalls.length) this.#follow(this.#textless++);
        return;
      case 'refusal':
        this.refusal += delta.text;
        this.#grow(delta.text);
        return;
      case 'reasoning':
        this.reasoning += delta.text;
        this.#grow(delta.text);
        return;
      case 'tool_start': {
        const { index, id, name } = delta;
        this.#name(id, name);
        const latest = this.#toolCalls.at(-1);
        if (latest) latest.followed ??= 'call';
        const call: ToolCall = { index, id, name, arguments: '', state: 'open', followed: undefined };
        this.#toolCalls.push(call);
        this.#byIndex.set(index, call);
        this.#open.set(call, new CallArguments());
        this.#openList = undefined;
        return;
      }
      case 'tool_arguments': {
        const call = this.#call(delta.index);
        call.arguments += delta.text;
        this.#open.get(call)?.add(delta.text);
        this.#grow(delta.text);
        return;
      }
      case 'tool_close':
        this.#end(delta.index, 'closed');
        return;
      case 'tool_cancel':
        this.#end(delta.index, 'cancelled');
        return;
      case 'provider_tool_start':
        this.#name(delta.id, delta.name);
        foldProviderTool(this.#providerTools, delta, this.text.length, this.#upstream);
        return;
      case 'provider_tool_end':
        foldProviderTool(this.#providerTools, delta, this.text.length, this.#upstream);
        this.#grow(JSON.stringify(delta.items));
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

  /** So many of the last UTF-16 units of reasoning were never shown, and are no part of the answer. */
  dropReasoning(characters: number): void {
    if (characters === 0) return;
    this.reasoning = this.reasoning.slice(0, -characters);
    this.size -= characters;
    this.#said_bytes = undefined;
  }

  get hasOpenCalls(): boolean {
    return this.#open.size > 0;
  }

  /** Those that are neither closed nor cancelled, in the order in which they began. */
  get openCalls(): readonly ToolCall[] {
    this.#openList ??= [...this.#open.keys()];
    return this.#openList;
  }

  /** The first of them, up to one that is not meant. Costs nothing for those after it. */
  firstOpenCalls(isMeant: (call: ToolCall) => boolean): readonly ToolCall[] {
    const meant: ToolCall[] = [];
    for (const call of this.#open.keys()) {
      if (!isMeant(call)) break;
      meant.push(call);
    }
    return meant;
  }

  get toolCalls(): readonly ToolCall[] {
    return this.#toolCalls;
  }

  /** Whether the transcript is larger than this, in UTF-8: calls count, even if nothing is said in them. */
  exceeds(limit_bytes: number): boolean {
    const { held_bytes_max } = this;
    if (held_bytes_max <= limit_bytes) return false;
    this.#said_bytes ??= this.#measured();
    return this.#said_bytes + this.#calls_bytes > limit_bytes;
  }

  /** As much as {@link exceeds} may find, without counting. */
  get held_bytes_max(): number {
    return BYTES_PER_UNIT_MAX * (this.size + this.#names_size) + this.#calls_bytes;
  }

  /** Text that came in small pieces is a list of them to V8, which takes up to twenty times as much: puts it in one piece. */
  compact(): void {
    for (const text of [this.text, this.refusal, this.reasoning, this.#toolCalls.at(-1)?.arguments ?? ''])
      text.charCodeAt(0);
  }

  /** How far the arguments of an open call have come. Costs the same however long they are. */
  contentOf(call: ToolCall): ArgumentsContent {
    return this.#open.get(call)?.contentOf(call.arguments) ?? 'partial';
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

  /** A call, or a tool that the provider runs, takes memory even if nothing is said in it. */
  #name(id: string, name: string): void {
    this.#names_size += id.length + name.length;
    this.#calls_bytes += CALL_OVERHEAD_BYTES;
    if (this.#said_bytes !== undefined) this.#said_bytes += Buffer.byteLength(id) + Buffer.byteLength(name);
  }

  #grow(said: string): void {
    this.size += said.length;
    if (this.#said_bytes !== undefined) this.#said_bytes += Buffer.byteLength(said);
  }

  #measured(): number {
    let bytes =
      Buffer.byteLength(this.text) + Buffer.byteLength(this.refusal) + Buffer.byteLength(this.reasoning);
    for (const { id, name, arguments: text } of this.#toolCalls)
      bytes += Buffer.byteLength(id) + Buffer.byteLength(name) + Buffer.byteLength(text);
    for (const { id, name, items } of this.#providerTools)
      bytes += Buffer.byteLength(id) + Buffer.byteLength(name) + Buffer.byteLength(JSON.stringify(items));
    return bytes;
  }

  #end(index: number, state: 'closed' | 'cancelled'): void {
    const call = this.#call(index);
    call.state = state;
    this.#open.delete(call);
    this.#openList = undefined;
  }

  #call(index: number): Mutable<ToolCall> {
    const call = this.#byIndex.get(index);
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
