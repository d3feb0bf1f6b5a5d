import { isObject } from '../../../lib/json.ts';
import type { Fields } from '../../../lib/json-body.ts';
import type { SettledCall } from '../../../plans/tool-call.ts';
import {
  type AnsweredCall,
  type Conversation,
  type ConversationPart,
  stoodFor,
  type WireNotices,
  withText,
  written,
} from '../common/conversation.ts';
import { type Json, textIn } from './event.ts';
import { itemsOf, type ResponsesRequest } from './request.ts';

type Item = Readonly<Record<string, unknown>>;

/**
 * The items of the input. Everything except user input, instructions and results belongs to the model: consecutive
 * reasoning, calls and messages form one response, and are refused without each other.
 */
export const responsesConversation: Conversation<ResponsesRequest> = {
  messagesOf({ input, previous_response_id, conversation }) {
    // Earlier parts are stored at the provider, or only referenced.
    const isElsewhere = [previous_response_id, conversation].some((id) => (id ?? undefined) !== undefined);
    if (isElsewhere || !Array.isArray(input) || input.some(isReference)) return undefined;
    return input;
  },
  sentIn: itemsOf,
  partOf: (item) => partOf(isObject(item) ? item : {}),
  withMessages: (request, input) => ({ ...request, input }),
  messageOf: (text) => ({ type: 'message', role: 'user', content: text }),
  joined(item, text) {
    const { content, ...rest } = item as Item;
    if (Array.isArray(content)) return { ...rest, content: [...content, { type: 'input_text', text }] };
    return { ...rest, content: `${written(content)}\n\n${text}` };
  },
};

const isReference = (item: unknown): boolean => isObject(item) && item.type === 'item_reference';

const INSTRUCTIONS: ReadonlySet<unknown> = new Set(['system', 'developer']);

function partOf(item: Item): ConversationPart {
  const { type, role, content } = item;
  // Only the provider can read its own compaction.
  if (INSTRUCTIONS.has(role) || type === 'compaction')
    return { kind: 'pinned', calls: [], results: [], sayings: [] };
  if (role === 'user') return { kind: 'user', calls: [], results: [], sayings: [said('user', content)] };
  if (isOutput(item)) {
    const id = written(item.call_id ?? item.approval_request_id);
    const saying = { label: `result of ${id}`, text: outputOf(item), isOutput: true } as const;
    return { kind: 'result', calls: [], results: [id], sayings: [saying] };
  }
  const call = item.call_id ?? (type === 'mcp_approval_request' ? item.id : undefined);
  return {
    kind: 'model',
    calls: call === undefined ? [] : [written(call)],
    results: [],
    sayings: type === 'reasoning' ? [] : [role === undefined ? called(item) : said('assistant', content)],
  };
}

const isOutput = ({ type }: Item): boolean =>
  typeof type === 'string' && (type.endsWith('_output') || type === 'mcp_approval_response');

function said(label: string, content: unknown) {
  if (!Array.isArray(content)) return { label, text: written(content) };
  const parts = content.filter(isObject).map(({ type, text, refusal }) => text ?? refusal ?? stoodFor(type));
  return { label, text: parts.map(written).join('\n') };
}

/** A call, or the work of a provider tool. */
const called = ({ type, name, call_id, arguments: json, input, action, output }: Item) => ({
  label: `assistant: ${[type, name, call_id].filter((value) => typeof value === 'string').join(' ')}`,
  text: written(json ?? input ?? action ?? output),
});

function outputOf({ output, approve }: Item): string {
  if (Array.isArray(output)) return said('', output).text;
  return isObject(output) ? stoodFor(output.type) : written(output ?? approve);
}

type Items = readonly unknown[];

/**
 * Notices as separate input items: after the leading instructions, or after the last call result. The joined form
 * appends them to the preceding item, or to `instructions`.
 */
export const responsesNotices: WireNotices = {
  answeredCalls({ input, previous_response_id }) {
    const items = Array.isArray(input) ? input.filter(isObject) : [];
    const end = items.findLastIndex((item) => !isClients(item)) + 1;
    const calls = new Map(
      items
        .slice(0, end)
        .flatMap(callsIn)
        .map((call) => [call.id, call]),
    );
    // If the provider stores the conversation, the request may contain only the result of a call.
    const answer = typeof previous_response_id === 'string' ? previous_response_id : undefined;
    return items
      .slice(end)
      .filter(isResult)
      .map(({ call_id }) => textIn(call_id))
      .map((id): AnsweredCall => calls.get(id) ?? { id, answer });
  },

  withNotice(request, { place, text }, form) {
    const { input } = request;
    if (!(typeof (input ?? '') === 'string' || Array.isArray(input))) return request;
    const items = itemsOf(request as Pick<ResponsesRequest, 'input'>);
    const isJoined = form === 'joined';
    return place === 'instructions'
      ? withInstruction(request, items, text, isJoined)
      : withHint(request, items, text, isJoined);
  },
};

function withInstruction(request: Fields, items: Items, text: string, isJoined: boolean): Fields {
  const first = items.findIndex((item) => !isInstruction(item));
  const end = first === -1 ? items.length : first;
  const before = items[end - 1];
  const joined = isJoined ? itemWith(before, 'content', text) : undefined;
  if (joined) return { ...request, input: items.with(end - 1, joined) };
  const instructions = request.instructions ?? '';
  if (isJoined && end === 0 && typeof instructions === 'string')
    return { ...request, instructions: withText(instructions, text, 'input_text') };
  // Nothing may come between a result and its call, which the provider may store.
  const said = items.slice(end).findIndex((item) => !isResult(item));
  const index = said === -1 ? items.length : end + said;
  // If the client uses `developer`, its model may accept instructions in no other role.
  const role = isObject(before) && before.role === 'developer' ? 'developer' : 'system';
  return { ...request, input: items.toSpliced(index, 0, messageOf(role, text)) };
}

function withHint(request: Fields, items: Items, text: string, isJoined: boolean): Fields {
  const last = items.findLastIndex(isResult);
  if (last === -1) return request;
  const joined = isJoined ? itemWith(items[last], 'output', text) : undefined;
  const input = joined ? items.with(last, joined) : items.toSpliced(last + 1, 0, messageOf('user', text));
  return { ...request, input };
}

const messageOf = (role: string, content: string) => ({ type: 'message', role, content });

/** `undefined` if the field can't hold text. */
function itemWith(item: unknown, field: 'content' | 'output', text: string): Json | undefined {
  if (!isObject(item)) return undefined;
  const joined = withText(item[field], text, 'input_text');
  return joined === undefined ? undefined : { ...item, [field]: joined };
}

const isInstruction = (item: unknown): boolean =>
  isObject(item) && (item.role === 'system' || item.role === 'developer');

const isResult = (item: unknown): boolean =>
  isObject(item) && textIn(item.type).endsWith('_output') && typeof item.call_id === 'string';

/** Whether the item comes from the client. */
const isClients = (item: Json): boolean =>
  isResult(item) || (typeof item.role === 'string' && item.role !== 'assistant');

function callsIn({ type, call_id, name, arguments: json, input }: Json): readonly SettledCall[] {
  if (typeof call_id !== 'string' || typeof name !== 'string') return [];
  if (type === 'function_call' && typeof json === 'string') return [{ id: call_id, name, arguments: json }];
  // Free text counts as a JSON string, like in a transcript.
  if (type === 'custom_tool_call' && typeof input === 'string')
    return [{ id: call_id, name, arguments: JSON.stringify(input) }];
  return [];
}
