import { isObject } from '../../../lib/json.ts';
import type { Delta } from '../../../plans/delta.ts';
import { normalisedArguments, parses } from '../../../plans/tool-call.ts';
import { type AttemptItem, type Json, type ResponsesData, textIn, typeOf } from './event.ts';

/** Item types for the client to execute. For some other types that depends on the item. */
const CLIENT_CALLS: ReadonlySet<unknown> = new Set([
  'function_call',
  'custom_tool_call',
  'computer_call',
  'local_shell_call',
  'apply_patch_call',
  'mcp_approval_request',
]);

const NO_DELTAS: readonly Delta[] = [];

/** Classifies an item. */
export function kindOf(item: Json): AttemptItem['kind'] {
  const { type, environment, execution } = item;
  if (type === 'message' || type === 'reasoning') return type;
  if (type === 'shell_call') return isObject(environment) && environment.type !== 'local' ? 'other' : 'call';
  if (type === 'tool_search_call') return execution === 'client' ? 'call' : 'other';
  return CLIENT_CALLS.has(type) ? 'call' : 'other';
}

/** A call with free text instead of JSON, kept as a JSON string that closes at its end. */
export const isCustom = ({ type }: Json): boolean => type === 'custom_tool_call';

/** Whether arguments are sent separately. For other calls, the whole item stands for the arguments. */
export const isFunction = ({ type }: Json): boolean =>
  type === 'function_call' || type === 'custom_tool_call';

/** A JSON string without quotes; such pieces can be concatenated. */
export const jsonPiece = (text: string): string => JSON.stringify(text).slice(1, -1);

/** Tracks an output item through an attempt, and extracts what is new in each event. */
export class TrackedItem implements AttemptItem {
  readonly kind: AttemptItem['kind'];
  readonly added: Json;
  readonly #nextCall: () => number;
  /** The length of each text so far. */
  readonly #said = new Map<string, number>();
  #call: number | undefined;
  #arguments = '';
  #isOver: boolean = false;

  /** `added`: the announced item, or what is known without an announcement. */
  constructor(added: Json, nextCall: () => number) {
    this.kind = kindOf(added);
    this.added = added;
    this.#nextCall = nextCall;
  }

  /** Whether the client has to execute it. */
  get isCall(): boolean {
    return this.kind === 'call';
  }

  lengthOf(content_index: number): number {
    return this.#said.get(`${content_index}`) ?? 0;
  }

  /** Adds a piece of a text. */
  say(kind: 'text' | 'refusal' | 'reasoning', place: string, text: string): readonly Delta[] {
    if (text === '') return NO_DELTAS;
    this.#said.set(place, (this.#said.get(place) ?? 0) + text.length);
    return [{ kind, text }];
  }

  /** Completes a text: some servers don't send pieces. */
  sayRest(kind: 'text' | 'refusal' | 'reasoning', place: string, whole: string): readonly Delta[] {
    return this.say(kind, place, whole.slice(this.#said.get(place) ?? 0));
  }

  /** Begins the call, if its arguments arrive in pieces; others begin once complete. */
  begin(item: Json = this.added): readonly Delta[] {
    const { name, call_id } = item;
    if (this.#call !== undefined || !isFunction(item) || typeof name !== 'string') return NO_DELTAS;
    return this.#start(textIn(call_id), name, isCustom(item) ? '"' : '');
  }

  /** Adds a piece of its arguments, or of its free text input. */
  argue(piece: string): readonly Delta[] {
    if (this.#call === undefined || this.#isOver || piece === '') return NO_DELTAS;
    this.#arguments += piece;
    const text = isCustom(this.added) ? jsonPiece(piece) : piece;
    return [{ kind: 'tool_arguments', index: this.#call, text }];
  }

  /** Completes the arguments. Invalid JSON doesn't close the call. */
  close(whole: string): readonly Delta[] {
    if (this.#call === undefined || this.#isOver) return NO_DELTAS;
    const rest = whole.startsWith(this.#arguments)
      ? this.argue(whole.slice(this.#arguments.length))
      : NO_DELTAS;
    this.#isOver = true;
    const index = this.#call;
    if (!isCustom(this.added) && !parses(normalisedArguments(this.#arguments))) return rest;
    const quote: readonly Delta[] = isCustom(this.added)
      ? [{ kind: 'tool_arguments', index, text: '"' }]
      : [];
    return [...rest, ...quote, { kind: 'tool_close', index, proof: 3 }];
  }

  /** Ends the item. An incomplete one was cut, e.g. by a limit. */
  finish(item: Json): readonly Delta[] {
    if (!this.isCall || this.#isOver) return NO_DELTAS;
    if (item.status === 'incomplete') return this.#cut();
    if (isFunction(item)) {
      const begun = this.begin(item);
      const closed = this.close(textIn(isCustom(item) ? item.input : item.arguments));
      return [...begun, ...closed];
    }
    const begun = this.#start(textIn(item.call_id ?? item.id), textIn(item.type), JSON.stringify(item));
    return [...begun, ...this.close('')];
  }

  #start(id: string, name: string, said: string): readonly Delta[] {
    const index = this.#nextCall();
    this.#call = index;
    const start: Delta = { kind: 'tool_start', index, id, name };
    return said === '' ? [start] : [start, { kind: 'tool_arguments', index, text: said }];
  }

  #cut(): readonly Delta[] {
    this.#isOver = true;
    return this.#call === undefined ? NO_DELTAS : [{ kind: 'tool_cancel', index: this.#call }];
  }
}

/** What an event implies about its item if that was not announced. */
export function impliedItem({ type, item_id }: ResponsesData): Json {
  const id = typeof item_id === 'string' ? { id: item_id } : {};
  if (/^response\.(output_text|refusal|content_part)\./.test(type)) return { ...id, type: 'message' };
  if (type.startsWith('response.reasoning_')) return { ...id, type: 'reasoning' };
  if (type.startsWith('response.function_call_arguments.')) return { ...id, type: 'function_call' };
  if (type.startsWith('response.custom_tool_call_input.')) return { ...id, type: 'custom_tool_call' };
  const [, own] = /^response\.([a-z_]+_call|mcp_list_tools)(?:_[a-z]+)*\./.exec(type) ?? [];
  return own === undefined ? id : { ...id, type: own };
}

/** An item's encrypted content. */
export const secretOf = (item: object): string =>
  'encrypted_content' in item ? textIn(item.encrypted_content) : '';

/** The thoughts that this event completes, if it contains the encrypted form that the provider accepts back. */
export function sealedIn({ type, item }: ResponsesData): Json | undefined {
  const isEnd = type === 'response.output_item.done';
  if (!isEnd || !isObject(item) || typeOf(item) !== 'reasoning' || secretOf(item) === '') return undefined;
  return item;
}
