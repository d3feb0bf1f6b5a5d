import { isObject } from '../../../lib/json.ts';
import type { SettledCall } from '../../../plans/tool-call.ts';
import { latestTurn, type WireNotices, withText } from '../common/notices.ts';

/** Messages of their own: one after the leading system and developer messages, one after the last tool result. */
export const chatNotices: WireNotices = {
  answeredCalls({ messages }) {
    const { answer, since } = latestTurn(messages);
    const results = since.filter(({ role }) => role === 'tool');
    const ids = new Set(results.map(({ tool_call_id }) => tool_call_id));
    const calls = answer?.tool_calls;
    return (Array.isArray(calls) ? calls : [])
      .filter(isCall)
      .filter(({ id }) => ids.has(id))
      .map(({ id, function: { name, arguments: text } }): SettledCall => ({ id, name, arguments: text }));
  },

  withNotice(request, { place, text }, form) {
    if (!Array.isArray(request.messages)) return request;
    const messages: readonly unknown[] = request.messages;
    const index = place === 'instructions' ? instructionsEnd(messages) : toolResultsEnd(messages);
    const before = messages[index - 1];
    if (place === 'tool_results' && !before) return request;
    const content =
      form === 'joined' && isObject(before) ? withText(before.content, text, 'text') : undefined;
    if (isObject(before) && content !== undefined)
      return { ...request, messages: messages.with(index - 1, { ...before, content }) };
    // A client that gives instructions as `developer` talks to a model that accepts them in no other role.
    const role = place === 'tool_results' ? 'user' : roleOf(before) === 'developer' ? 'developer' : 'system';
    return { ...request, messages: messages.toSpliced(index, 0, { role, content: text }) };
  },
};

function instructionsEnd(messages: readonly unknown[]): number {
  const end = messages.findIndex((message) => !['system', 'developer'].includes(String(roleOf(message))));
  return end === -1 ? messages.length : end;
}

const toolResultsEnd = (messages: readonly unknown[]): number =>
  messages.findLastIndex((message) => roleOf(message) === 'tool') + 1;

const roleOf = (message: unknown): unknown => (isObject(message) ? message.role : undefined);

interface Call {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

function isCall(call: unknown): call is Call {
  if (!isObject(call) || typeof call.id !== 'string' || !isObject(call.function)) return false;
  return typeof call.function.name === 'string' && typeof call.function.arguments === 'string';
}
