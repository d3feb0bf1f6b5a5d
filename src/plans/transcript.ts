import { speakable } from '../lib/text.ts';
import { type ArgumentsContent, CallArguments } from './call-arguments.ts';
import type { Delta, Usage } from './delta.ts';
import type { ToolCall } from './tool-call.ts';

/** Memory per call or provider tool, in addition to its text. */
export const CALL_OVERHEAD_BYTES = 1024;

/** The maximum length of a UTF-16 unit in UTF-8. */
const BYTES_PER_UNIT_MAX = 3;

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** The answer so far, across attempts: the fold of all deltas of a run. */
export class Transcript {
  text = '';
  refusal = '';
  reasoning = '';
  finish: string | undefined;
  usage: Usage | undefined;
  /** UTF-16 units in the answer. */
  size = 0;
  readonly #toolCalls: Mutable<ToolCall>[] = [];
  /** The latest call of each index. */
  readonly #byIndex = new Map<number, Mutable<ToolCall>>();
  /** Open calls, in order of appearance. */
  readonly #open = new Map<ToolCall, CallArguments>();
  /** Cached list of the open calls; cleared whenever a call opens or ends. */
  #openList: readonly ToolCall[] | undefined;
  /** Index of the first call that no text has followed yet. */
  #textless = 0;
  /** UTF-16 units in call ids and names, and the fixed overhead of calls in bytes. */
  #names_size = 0;
  #calls_bytes = 0;
  /** Size of the content in UTF-8. Computed on first need, because measuring each piece costs more than folding it. */
  #said_bytes: number | undefined;
  readonly #providerTools: ProviderTool[] = [];
  /** The upstream that produced the current deltas, if known. */
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

  /** Removes this many trailing UTF-16 units of reasoning, which were never shown. */
  dropReasoning(characters: number): void {
    if (characters === 0) return;
    this.reasoning = this.reasoning.slice(0, -characters);
    this.size -= characters;
    this.#said_bytes = undefined;
  }

  get hasOpenCalls(): boolean {
    return this.#open.size > 0;
  }

  /** Calls that are neither closed nor cancelled, in order of appearance. */
  get openCalls(): readonly ToolCall[] {
    this.#openList ??= [...this.#open.keys()];
    return this.#openList;
  }

  /** The leading open calls that satisfy `isMeant`. Stops at the first that doesn't. */
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

  /** Whether the transcript is larger than this in UTF-8. Calls count even without content. */
  exceeds(limit_bytes: number): boolean {
    const { held_bytes_max } = this;
    if (held_bytes_max <= limit_bytes) return false;
    this.#said_bytes ??= this.#measured();
    return this.#said_bytes + this.#calls_bytes > limit_bytes;
  }

  /** An upper bound for the size in {@link exceeds}, without measuring. */
  get held_bytes_max(): number {
    return BYTES_PER_UNIT_MAX * (this.size + this.#names_size) + this.#calls_bytes;
  }

  /** Flattens strings built from small pieces: V8 keeps those as ropes, which take up to twenty times the memory. */
  compact(): void {
    for (const text of [this.text, this.refusal, this.reasoning, this.#toolCalls.at(-1)?.arguments ?? ''])
      text.charCodeAt(0);
  }

  /** The content of an open call's arguments. The cost doesn't depend on their length. */
  contentOf(call: ToolCall): ArgumentsContent {
    return this.#open.get(call)?.contentOf(call.arguments) ?? 'partial';
  }

  get closedCalls(): readonly ToolCall[] {
    return this.#toolCalls.filter((call) => call.state === 'closed');
  }

  /** No text followed an incomplete call, so the text ends where the call began. */
  get callsComeNext(): boolean {
    return !this.#toolCalls.some(({ state, followed }) => state !== 'closed' && followed === 'text');
  }

  /** Tools that the provider ran or is running for this answer. */
  get providerTools(): readonly ProviderTool[] {
    return this.#providerTools;
  }

  /**
   * Whether a continuation can build on the text: not on white space alone, which some providers refuse, nor on half a
   * character.
   */
  get hasText(): boolean {
    return speakable(this.text).trim() !== '';
  }

  #follow(position: number): void {
    const call = this.#toolCalls[position];
    if (call) call.followed = 'text';
  }

  /** Accounts for the fixed overhead of a call or provider tool. */
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

/** A tool that the provider ran or is running. It must not run again. */
export interface ProviderTool {
  readonly id: string;
  readonly name: string;
  /** `running`: no result yet, so whether it took effect is unknown. */
  readonly state: 'running' | 'settled';
  /** UTF-16 units of the answer's text before it. */
  readonly offset: number;
  /** The configured name of the upstream that ran it, if known. */
  readonly upstream?: string;
  /** Its call and result, in the form in which the provider accepts them back; empty while it runs. */
  readonly items: readonly object[];
}

type Start = Extract<Delta, { kind: 'provider_tool_start' }>;
type End = Extract<Delta, { kind: 'provider_tool_end' }>;

export const isOfProviderTool = ({ kind }: Delta): boolean =>
  kind === 'provider_tool_start' || kind === 'provider_tool_end';

/**
 * Applies a delta to the provider tools of an answer, in order of appearance. A result counts even if its call was
 * never announced.
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

/** An answer split into parts for its provider, because tools ran in the middle of it. */
export interface AnswerGivenBack {
  /** In order: text, and the items of provider tools. */
  readonly before: readonly (string | readonly object[])[];
  /** The text after the last tool, which the continuation extends. */
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
