import { isObject } from '../../../lib/json.ts';
import type { Fields } from '../../../lib/json-body.ts';
import type { SettledCall } from '../../../plans/tool-call.ts';
import { type AnsweredCall, type WireNotices, withText } from '../common/notices.ts';
import { type Json, textIn } from './event.ts';
import { itemsOf, type ResponsesRequest } from './request.ts';

type Items = readonly unknown[];

/**
 * Items of their own in the input: one after the leading instructions, one after the last result of a call. Or else the
 * end of what is before that place, which may be `instructions`.
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
    // Where the provider keeps the conversation, the request may have nothing of a call but its result.
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
  // Nothing comes between a result and its call, which the provider may have.
  const said = items.slice(end).findIndex((item) => !isResult(item));
  const index = said === -1 ? items.length : end + said;
  // A client that gives instructions as `developer` talks to a model that accepts them in no other role.
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

/** `undefined` where the field has no room for a text. */
function itemWith(item: unknown, field: 'content' | 'output', text: string): Json | undefined {
  if (!isObject(item)) return undefined;
  const joined = withText(item[field], text, 'input_text');
  return joined === undefined ? undefined : { ...item, [field]: joined };
}

const isInstruction = (item: unknown): boolean =>
  isObject(item) && (item.role === 'system' || item.role === 'developer');

const isResult = (item: unknown): boolean =>
  isObject(item) && textIn(item.type).endsWith('_output') && typeof item.call_id === 'string';

/** Said by the client, not by the model. */
const isClients = (item: Json): boolean =>
  isResult(item) || (typeof item.role === 'string' && item.role !== 'assistant');

function callsIn({ type, call_id, name, arguments: json, input }: Json): readonly SettledCall[] {
  if (typeof call_id !== 'string' || typeof name !== 'string') return [];
  if (type === 'function_call' && typeof json === 'string') return [{ id: call_id, name, arguments: json }];
  // Free text counts as a JSON string, as it does in a transcript.
  if (type === 'custom_tool_call' && typeof input === 'string')
    return [{ id: call_id, name, arguments: JSON.stringify(input) }];
  return [];
}
