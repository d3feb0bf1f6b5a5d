import { isObject } from '../../../lib/json.ts';
import type { Delta } from '../../../plans/delta.ts';
import { isUnreadableText } from '../common/event-data.ts';
import type { ChatToolCall } from './chunk-reader.ts';

/** Providers give the legacy single `function_call` no index; it must not collide with one of `tool_calls`. */
const LEGACY_INDEX = -1;

interface TrackedCall {
  readonly call: number;
  id: string;
  /** Arguments that came before the name. */
  early: string;
  started: boolean;
}

/**
 * Tells the tool calls of one attempt apart, whatever the provider makes of `index` and `id`: it may leave the
 * index out, reuse one for another call, repeat the id, or send the name or the id late.
 */
export class ChatToolCalls {
  readonly #nextCall: () => number;
  readonly #byId = new Map<string, TrackedCall>();
  readonly #byIndex = new Map<number, TrackedCall>();
  #latest: TrackedCall | undefined;

  /** `nextCall` hands out the run's numbers for calls. */
  constructor(nextCall: () => number) {
    this.#nextCall = nextCall;
  }

  /** Deltas of one element of `delta.tool_calls`; `undefined` where its arguments cannot be read. */
  read(fragment: ChatToolCall): Delta[] | undefined {
    const id = typeof fragment.id === 'string' ? fragment.id : '';
    const index = typeof fragment.index === 'number' ? fragment.index : undefined;
    const { name, arguments: text } = isObject(fragment.function) ? fragment.function : {};
    return this.#deltas(this.#find(id, index, isName(name)), name, text, extraOf(fragment));
  }

  /** The same of the legacy `delta.function_call`. */
  readLegacy(fragment: { name?: unknown; arguments?: unknown }): Delta[] | undefined {
    const { name, arguments: text } = fragment;
    return this.#deltas(this.#find('', LEGACY_INDEX, isName(name)), name, text);
  }

  #find(id: string, index: number | undefined, named: boolean): TrackedCall {
    const known = id === '' ? undefined : this.#byId.get(id);
    if (known) return known;
    const open = index === undefined ? this.#latest : this.#byIndex.get(index);
    if (open && id === '') return open;
    // A call that began without an id gets it now, unless this is the beginning of another one.
    if (open?.id === '' && !(open.started && named)) {
      open.id = id;
      this.#byId.set(id, open);
      return open;
    }
    const tracked: TrackedCall = { call: this.#nextCall(), id, early: '', started: false };
    if (id !== '') this.#byId.set(id, tracked);
    if (index !== undefined) this.#byIndex.set(index, tracked);
    this.#latest = tracked;
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
    if (!isName(name)) return [];
    tracked.started = true;
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

/** A few providers send the arguments as the object itself. `undefined` for what cannot be arguments. */
function argumentsText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (isObject(value)) return JSON.stringify(value);
  return isUnreadableText(value) ? undefined : '';
}
