import { createHash } from 'node:crypto';
import { isObject } from '../../../lib/json.ts';
import type { Delta } from '../../../plans/delta.ts';
import { type AttemptItem, type Json, type ResponsesData, textIn, typeOf } from './event.ts';
import { impliedItem, kindOf } from './items.ts';

const NO_DELTAS: readonly Delta[] = [];
/** Their result is a separate item with the same `call_id`. */
const PAIRED: ReadonlySet<string> = new Set(['shell_call', 'tool_search_call']);
/** Provider items that run nothing, but that later tools may depend on. */
const CONTEXT: ReadonlySet<string> = new Set(['mcp_list_tools', 'compaction']);
const ID_CHARACTERS = 48;

interface SeenItem {
  readonly kind: AttemptItem['kind'];
  readonly type: string;
  readonly id: string;
  readonly name: string;
}

/**
 * The provider tools in one attempt's events. A tool counts as begun once announced: OpenAI sends `in_progress` with
 * the announcement, and later events may be lost with the connection.
 */
export class ResponsesProviderTools {
  /** By `output_index`. */
  readonly #items = new Map<unknown, SeenItem>();
  /** Uses that wait for their result, by `call_id`. */
  readonly #uses = new Map<string, { readonly seen: SeenItem; readonly items: readonly Json[] }>();
  /** Items that must accompany the next tool: the provider refuses it without the reasoning that led to it. */
  #context: Json[] = [];
  /** There was reasoning that the provider doesn't accept back. */
  #isParted = false;

  read(data: ResponsesData): readonly Delta[] {
    const { type, output_index, item_id, item } = data;
    const told = isObject(item) ? item : undefined;
    const key = output_index ?? item_id ?? told?.id;
    if (key === undefined) return NO_DELTAS;
    const known = type === 'response.output_item.added' ? undefined : this.#items.get(key);
    const seen = known ?? seenIn(told ?? impliedItem(data), key);
    this.#items.set(key, seen);
    const begun = known ? NO_DELTAS : this.#begin(seen);
    return type === 'response.output_item.done' && told ? [...begun, ...this.#end(seen, told)] : begun;
  }

  #begin({ kind, type, id, name }: SeenItem): readonly Delta[] {
    // Reasoning that led to a message or a call doesn't belong to later tools.
    if (kind === 'message' || kind === 'call')
      this.#context = this.#context.filter((item) => typeOf(item) !== 'reasoning');
    return kind === 'other' && isRun(type) ? [{ kind: 'provider_tool_start', id, name }] : NO_DELTAS;
  }

  #end(seen: SeenItem, item: Json): readonly Delta[] {
    const { kind, type } = seen;
    if (kind === 'reasoning') {
      if (textIn(item.encrypted_content) !== '') this.#context.push(item);
      else this.#isParted = true;
    }
    if (kind !== 'other') return NO_DELTAS;
    if (CONTEXT.has(type)) {
      this.#context.push(item);
      return NO_DELTAS;
    }
    const call_id = textIn(item.call_id);
    const use = isResult(type) ? this.#uses.get(call_id) : undefined;
    const items = use ? [...use.items, item] : [...this.#drainContext(), this.#asGivenBack(item)];
    if (PAIRED.has(type)) {
      this.#uses.set(call_id, { seen, items });
      return NO_DELTAS;
    }
    const { id, name } = use?.seen ?? seen;
    return [{ kind: 'provider_tool_end', id, name, items }];
  }

  #drainContext(): readonly Json[] {
    const context = this.#context;
    this.#context = [];
    return context;
  }

  /** Replaces the id, because a provider that knows it would require the missing reasoning. */
  #asGivenBack(item: Json): Json {
    if (!this.#isParted || typeof item.id !== 'string') return item;
    const prefix = /^[a-z]+(?=_)/.exec(item.id)?.[0] ?? 'item';
    const digest = createHash('sha256').update(item.id).digest('hex').slice(0, ID_CHARACTERS);
    return { ...item, id: `${prefix}_${digest}` };
  }
}

const isResult = (type: string): boolean => type.endsWith('_output');

const isRun = (type: string): boolean => !CONTEXT.has(type) && !isResult(type);

function seenIn(item: Json, key: unknown): SeenItem {
  const type = typeOf(item);
  return {
    kind: kindOf(item),
    type,
    id: textIn(item.id) || textIn(item.call_id) || String(key),
    name: textIn(item.name) || type.replace(/_call$/, '') || 'tool',
  };
}
