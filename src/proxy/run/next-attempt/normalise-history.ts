import { createHash } from 'node:crypto';
import type { DialectName } from '../../../config/dialect-names.ts';
import { isObject } from '../../../lib/json.ts';
import type { WireRequest } from '../../wires/common/wire.ts';

/** What some providers add to the messages they send, and want to have back. */
const ADDED_FIELDS = ['reasoning_content', 'reasoning', 'reasoning_details', 'reasoning_text'];
/** Others refuse what they do not know; they never send it themselves. */
const STRICT: ReadonlySet<DialectName> = new Set(['openai', 'azure', 'mistral']);

const MISTRAL_ID = /^[a-zA-Z0-9]{9}$/;
const MISTRAL_ID_CHARACTERS = 9;

/**
 * The conversation as a provider takes it that other providers have taken part in: the ids of their tool calls, their
 * reasoning and their signatures may be no use to it, or be refused. The same request if nothing had to be changed.
 */
export function historyFor(dialect: DialectName, request: WireRequest): WireRequest {
  const { messages } = request;
  if (!STRICT.has(dialect) || !Array.isArray(messages)) return request;
  const changed = messages.map((message: unknown) => messageFor(dialect, message));
  return changed.some((message, index) => message !== messages[index])
    ? { ...request, messages: changed }
    : request;
}

function messageFor(dialect: DialectName, message: unknown): unknown {
  if (!isObject(message)) return message;
  if (message.role === 'tool' && dialect === 'mistral') {
    const { tool_call_id: id } = message;
    return isForeign(id) ? { ...message, tool_call_id: mistralId(id) } : message;
  }
  return message.role === 'assistant' ? answerFor(dialect, message) : message;
}

function answerFor(dialect: DialectName, message: Record<string, unknown>): unknown {
  const { tool_calls } = message;
  const calls = Array.isArray(tool_calls) ? tool_calls.map((call: unknown) => callFor(dialect, call)) : [];
  const hasOtherCalls = calls.some((call, index) => call !== (tool_calls as unknown[])[index]);
  const added = ADDED_FIELDS.filter((field) => field in message);
  if (!hasOtherCalls && added.length === 0) return message;
  const kept = Object.entries(message).filter(([field]) => !added.includes(field));
  return { ...Object.fromEntries(kept), ...(hasOtherCalls && { tool_calls: calls }) };
}

function callFor(dialect: DialectName, call: unknown): unknown {
  if (!isObject(call)) return call;
  const isRenamed = dialect === 'mistral' && isForeign(call.id);
  if (!isRenamed && !('extra_content' in call)) return call;
  const { extra_content: _, ...rest } = call;
  return isRenamed ? { ...rest, id: mistralId(String(call.id)) } : rest;
}

const isForeign = (id: unknown): id is string => typeof id === 'string' && !MISTRAL_ID.test(id);

/** The same for a call and its result, and in every request of the conversation. */
const mistralId = (id: string): string =>
  createHash('sha256').update(id).digest('base64url').replace(/[-_]/g, '0').slice(0, MISTRAL_ID_CHARACTERS);
