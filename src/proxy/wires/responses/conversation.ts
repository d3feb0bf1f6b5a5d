import { isObject } from '../../../lib/json.ts';
import { type Conversation, type ConversationPart, stoodFor, written } from '../common/conversation.ts';
import type { ResponsesRequest } from './request.ts';

type Item = Readonly<Record<string, unknown>>;

/**
 * The items of the input. Whatever is not the user's, instructions, or a result is the model's: reasoning, calls and
 * messages that follow one another belong to one response, and are refused without each other.
 */
export const responsesConversation: Conversation<ResponsesRequest> = {
  messagesOf({ input, previous_response_id, conversation }) {
    // What came before is the provider's, or what is there is only named.
    const isElsewhere = [previous_response_id, conversation].some((id) => (id ?? undefined) !== undefined);
    if (isElsewhere || !Array.isArray(input) || input.some(isReference)) return undefined;
    return input;
  },
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
  // Only the provider can read what it has compressed itself.
  if (INSTRUCTIONS.has(role) || type === 'compaction')
    return { kind: 'pinned', calls: [], results: [], sayings: [] };
  if (role === 'user') return { kind: 'user', calls: [], results: [], sayings: [said('user', content)] };
  if (isResult(item)) {
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

const isResult = ({ type }: Item): boolean =>
  typeof type === 'string' && (type.endsWith('_output') || type === 'mcp_approval_response');

function said(label: string, content: unknown) {
  if (!Array.isArray(content)) return { label, text: written(content) };
  const parts = content.filter(isObject).map(({ type, text, refusal }) => text ?? refusal ?? stoodFor(type));
  return { label, text: parts.map(written).join('\n') };
}

/** A call, or what a tool of the provider did. */
const called = ({ type, name, call_id, arguments: json, input, action, output }: Item) => ({
  label: `assistant: ${[type, name, call_id].filter((value) => typeof value === 'string').join(' ')}`,
  text: written(json ?? input ?? action ?? output),
});

function outputOf({ output, approve }: Item): string {
  if (Array.isArray(output)) return said('', output).text;
  return isObject(output) ? stoodFor(output.type) : written(output ?? approve);
}
