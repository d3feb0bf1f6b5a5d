import { isObject } from '../../../lib/json.ts';
import type { Delta } from '../../../plans/delta.ts';
import {
  closedByFinish,
  normalisedArguments,
  proofOf,
  type SettledCall,
  type ToolCall,
  type ToolSchemas,
} from '../../../plans/tool-call.ts';
import { CALL_OVERHEAD_BYTES, Transcript } from '../../../plans/transcript.ts';
import { isUnreadableText } from '../common/event-data.ts';
import type { ChatChoice, ChatChunk, ChatToolCall } from './chunk-reader.ts';

/** A legacy `function_call` has no index, and must not collide with one of `tool_calls`. */
const LEGACY_INDEX = -1;

/** Limit for calls whose names have not arrived, as UTF-16 units. */
const NAMELESS_UNITS_MAX = 1_048_576;
/** Overhead of such a call in addition to its arguments. */
const NAMELESS_OVERHEAD_UNITS = 256;

interface TrackedCall {
  readonly call: number;
  id: string;
  /** Arguments that arrived before the name. */
  early: string;
  started: boolean;
}

/**
 * Distinguishes the tool calls of one attempt even if the provider omits or reuses `index`, repeats the id, or sends
 * the name or id late.
 */
export class ChatToolCalls {
  readonly #nextCall: () => number;
  readonly #byId = new Map<string, TrackedCall>();
  readonly #byIndex = new Map<number, TrackedCall>();
  #latest: TrackedCall | undefined;
  /** UTF-16 units held for calls without a name. */
  #nameless = 0;

  /** `nextCall` assigns the run's indices for calls. */
  constructor(nextCall: () => number) {
    this.#nextCall = nextCall;
  }

  /**
   * Deltas from one element of `delta.tool_calls`; `undefined` if its arguments are unreadable or its name doesn't
   * arrive.
   */
  read(fragment: ChatToolCall): Delta[] | undefined {
    const id = typeof fragment.id === 'string' ? fragment.id : '';
    const index = typeof fragment.index === 'number' ? fragment.index : undefined;
    const { name, arguments: text } = isObject(fragment.function) ? fragment.function : {};
    return this.#deltas(this.#find(id, index, isName(name)), name, text, extraOf(fragment));
  }

  /** The same for the legacy `delta.function_call`. */
  readLegacy(fragment: { name?: unknown; arguments?: unknown }): Delta[] | undefined {
    const { name, arguments: text } = fragment;
    return this.#deltas(this.#find('', LEGACY_INDEX, isName(name)), name, text);
  }

  #find(id: string, index: number | undefined, named: boolean): TrackedCall {
    const known = id === '' ? undefined : this.#byId.get(id);
    if (known) return known;
    const open = index === undefined ? this.#latest : this.#byIndex.get(index);
    if (open && id === '') return open;
    // Assigns the id to a call that began without one, unless the fragment begins another call.
    if (open?.id === '' && !(open.started && named)) {
      open.id = id;
      this.#byId.set(id, open);
      return open;
    }
    const tracked: TrackedCall = { call: this.#nextCall(), id, early: '', started: false };
    if (id !== '') this.#byId.set(id, tracked);
    if (index !== undefined) this.#byIndex.set(index, tracked);
    this.#latest = tracked;
    this.#nameless += NAMELESS_OVERHEAD_UNITS;
    return tracked;
  }

  #deltas(
    tracked: TrackedCall,
    name: unknown,
    text: unknown,
    extra?: Record<string, unknown>,
  ): Delta[] | undefined {
    const fragment = argumentsText(text);
    if (fragment === undefined) return undefined;
    if (tracked.started) {
      return fragment === '' ? [] : [{ kind: 'tool_arguments', index: tracked.call, text: fragment }];
    }
    tracked.early += fragment;
    this.#nameless += fragment.length;
    if (!isName(name)) return this.#nameless > NAMELESS_UNITS_MAX ? undefined : [];
    tracked.started = true;
    this.#nameless -= tracked.early.length + NAMELESS_OVERHEAD_UNITS;
    const start: Delta = {
      kind: 'tool_start',
      index: tracked.call,
      id: tracked.id,
      name,
      ...(extra && { extra }),
    };
    return tracked.early === ''
      ? [start]
      : [start, { kind: 'tool_arguments', index: tracked.call, text: tracked.early }];
  }
}

const isName = (value: unknown): value is string => typeof value === 'string' && value !== '';

function extraOf({
  index,
  id,
  type,
  function: _,
  ...extra
}: ChatToolCall): Record<string, unknown> | undefined {
  return Object.keys(extra).length > 0 ? extra : undefined;
}

/** Some providers send the arguments as an object. `undefined` for unreadable arguments. */
function argumentsText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (isObject(value)) return JSON.stringify(value);
  return isUnreadableText(value) ? undefined : '';
}

interface Choice {
  readonly calls: ChatToolCalls;
  readonly transcript: Transcript;
}

type ChoiceCall = Extract<Delta, { readonly kind: 'choice_call' }>;

/** A call that the journal doesn't contain yet. */
interface PendingCall {
  readonly choice: number;
  readonly call: ToolCall;
  readonly transcript: Transcript;
  /**
   * What had followed the call when its complete arguments last proved nothing; no need to check again until that
   * changes.
   */
  unproven?: ToolCall['followed'] | null;
}

/**
 * The tool calls of an answer with several choices, which is forwarded unchanged. Each choice numbers its own calls.
 */
export class ChoiceCalls {
  readonly #schemas: ToolSchemas;
  readonly #choices = new Map<unknown, Choice>();
  #pending: PendingCall[] = [];
  #count = 0;
  #held_bytes = 0;

  constructor(schemas: ToolSchemas) {
    this.#schemas = schemas;
  }

  /** The newly settled calls, for the journal. */
  read({ choices }: ChatChunk): readonly ChoiceCall[] {
    if (!Array.isArray(choices)) return [];
    const isStep = (choices as readonly ChatChoice[]).map(
      (choice) => isObject(choice) && this.#foldChoice(choice),
    );
    return isStep.includes(true) ? this.unrecorded() : [];
  }

  /** Newly settled calls at the end of the answer. */
  unrecorded(): readonly ChoiceCall[] {
    const { true: fresh = [], false: pending = [] } = Object.groupBy(this.#pending, (each) =>
      String(this.#isProven(each)),
    );
    this.#pending = pending;
    return fresh.map(({ choice, call }) => ({ kind: 'choice_call', choice, ...whole(call) }));
  }

  /** Memory held by all calls, including settled ones. */
  get held_bytes(): number {
    return this.#held_bytes;
  }

  /** Calls proven complete, choice by choice. */
  get settled(): readonly SettledCall[] {
    return this.#all.filter((call) => this.#isSettled(call)).map(whole);
  }

  /** All other calls. */
  get unfinished(): readonly ToolCall[] {
    return this.#all.filter((call) => !this.#isSettled(call));
  }

  get #all(): readonly ToolCall[] {
    return [...this.#choices.values()].flatMap(({ transcript }) => transcript.toolCalls);
  }

  /** Like {@link #isSettled}, but independent of the arguments' length, because it runs for every piece of text. */
  #isProven(pending: PendingCall): boolean {
    const { call, transcript } = pending;
    if (call.state !== 'closed') {
      if (transcript.contentOf(call) === 'partial' || pending.unproven === (call.followed ?? null))
        return false;
      pending.unproven = call.followed ?? null;
    }
    return this.#isSettled(call);
  }

  #isSettled(call: ToolCall): boolean {
    return call.state === 'closed' || proofOf(call, this.#schemas) !== undefined;
  }

  /**
   * True if the chunk may settle a call: another call began, text arrived, or the choice finished. Mere fragments don't
   * count.
   */
  #foldChoice({ index = 0, delta, finish_reason }: ChatChoice): boolean {
    const fragments = delta?.tool_calls;
    if (!Array.isArray(fragments) && !this.#choices.has(index)) return false;
    const { calls, transcript } = this.#choice(index);
    const before = transcript.toolCalls.length;
    const isText = typeof delta?.content === 'string' && delta.content !== '';
    // Only the presence of text matters to the calls.
    if (isText) transcript.fold({ kind: 'text', text: '' });
    for (const fragment of (fragments ?? []) as readonly ChatToolCall[]) {
      for (const told of calls.read(fragment) ?? []) this.#fold(told, index, transcript);
    }
    const isFinished = typeof finish_reason === 'string';
    if (isFinished) for (const close of closedByFinish(transcript).closed) transcript.fold(close);
    return isText || isFinished || (before > 0 && transcript.toolCalls.length > before);
  }

  #fold(told: Delta, index: unknown, transcript: Transcript): void {
    transcript.fold(told);
    if (told.kind === 'tool_arguments') this.#held_bytes += Buffer.byteLength(told.text);
    if (told.kind !== 'tool_start') return;
    this.#held_bytes += CALL_OVERHEAD_BYTES + Buffer.byteLength(told.id) + Buffer.byteLength(told.name);
    const call = transcript.toolCalls.at(-1);
    const choice = typeof index === 'number' ? index : 0;
    if (call) this.#pending.push({ choice, call, transcript });
  }

  #choice(index: unknown): Choice {
    const known = this.#choices.get(index);
    if (known) return known;
    this.#held_bytes += CALL_OVERHEAD_BYTES;
    const choice = { calls: new ChatToolCalls(() => this.#count++), transcript: new Transcript() };
    this.#choices.set(index, choice);
    return choice;
  }
}

const whole = ({ id, name, arguments: text }: ToolCall): SettledCall => ({
  id,
  name,
  arguments: normalisedArguments(text),
});
