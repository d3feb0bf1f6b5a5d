import { isObject } from '../../../lib/json.ts';
import { type Fields, withFields } from '../../../lib/json-body.ts';
import type { Compression } from '../../../plans/delta.ts';
import type { AttemptRequest } from '../../upstream/attempt.ts';
import type { RunTarget } from '../../upstream/target.ts';
import { upstreamUrl } from '../../upstream/transport.ts';
import type { Dialect } from '../../wires/common/dialect.ts';
import type { WireRequest } from '../../wires/common/wire.ts';
import { DIALECTS } from '../../wires/dialects/registry.ts';
import type { CompressedRequest } from '../compression/summary-in-place.ts';
import type { Run } from '../context/run.ts';
import type { RunContext } from '../context/run-context.ts';

/** The current request, before it's adapted to a target. */
export interface AskedConversation {
  readonly request: WireRequest;
  /** The serialised request. */
  readonly body: string;
  /** Set if the request is a shorter one, not the client's own. */
  readonly compressed?: Compression;
}

export const askedInstead = ({ request, compressed }: CompressedRequest): AskedConversation => ({
  request,
  body: JSON.stringify(request),
  compressed,
});

/** The model name to send to this target. */
export const modelOf = (target: RunTarget, { request }: Run): string => target.model ?? request.model;

export const dialectOf = (target: RunTarget, run: Run, { capabilities }: RunContext): Dialect =>
  run.wire.dialect ?? capabilities.dialect(target, modelOf(target, run)) ?? DIALECTS.generic;

/**
 * The request as this target accepts it: without other providers' additions if the run has several targets, and without
 * thoughts that the target has refused.
 */
export function requestFor(
  target: RunTarget,
  { request }: AskedConversation,
  run: Run,
  context: RunContext,
): WireRequest {
  const asked = run.targets ? historyFor(dialectOf(target, run, context), request) : request;
  const isRefused = context.capabilities.refusedThoughts.of(target.name);
  return (isRefused && run.wire.withoutThoughts?.(asked, isRefused)) ?? asked;
}

/** The request for the whole answer, unchanged unless this target needs another form. */
export function originalRequest(
  target: RunTarget,
  conversation: AskedConversation,
  run: Run,
  context: RunContext,
): AttemptRequest {
  const asked = requestFor(target, conversation, run, context);
  const isAsItCame = asked === conversation.request && target.model === undefined;
  return requestTo(target, run, isAsItCame ? conversation.body : bodyFor(target, run, asked));
}

/** The serialised request with this target's model name. */
export const bodyFor = (target: RunTarget, run: Run, body: object): string =>
  JSON.stringify({ ...body, model: modelOf(target, run) });

export const requestTo = (
  target: RunTarget,
  { wire }: Run,
  body: string,
  base_url = target.upstream.base_url,
): AttemptRequest => ({ url: upstreamUrl(base_url, wire.path), headers: target.headers, body });

/** The same request with additional fields that the client left out. */
export const withAdded = (
  asked: AttemptRequest,
  { request }: Pick<AskedConversation, 'request'>,
  added: Fields,
): AttemptRequest => ({
  ...asked,
  body: withFields({ text: asked.body ?? '', fields: request as unknown as Fields }, added).text,
});

/** Fields that some providers add to their messages and expect back. */
const ADDED_FIELDS = ['reasoning_content', 'reasoning', 'reasoning_details', 'reasoning_text'];

/**
 * The conversation for a provider that refuses other providers' additions: tool call ids, reasoning and signatures.
 * Returns the same request if nothing has to change.
 */
export function historyFor(dialect: Dialect, request: WireRequest): WireRequest {
  const { messages } = request;
  if (!dialect.refusesAddedFields || !Array.isArray(messages)) return request;
  const changed = messages.map((message: unknown) => messageFor(dialect, message));
  return changed.some((message, index) => message !== messages[index])
    ? { ...request, messages: changed }
    : request;
}

function messageFor(dialect: Dialect, message: unknown): unknown {
  if (!isObject(message)) return message;
  if (message.role === 'tool') {
    const tool_call_id = idFor(dialect, message.tool_call_id);
    return tool_call_id === message.tool_call_id ? message : { ...message, tool_call_id };
  }
  return message.role === 'assistant' ? answerFor(dialect, message) : message;
}

function answerFor(dialect: Dialect, message: Record<string, unknown>): unknown {
  const { tool_calls } = message;
  const calls = Array.isArray(tool_calls) ? tool_calls.map((call: unknown) => callFor(dialect, call)) : [];
  const hasOtherCalls = calls.some((call, index) => call !== (tool_calls as unknown[])[index]);
  const added = ADDED_FIELDS.filter((field) => field in message);
  if (!hasOtherCalls && added.length === 0) return message;
  const kept = Object.entries(message).filter(([field]) => !added.includes(field));
  return { ...Object.fromEntries(kept), ...(hasOtherCalls && { tool_calls: calls }) };
}

function callFor(dialect: Dialect, call: unknown): unknown {
  if (!isObject(call)) return call;
  const { extra_content: added, ...rest } = call;
  const id = idFor(dialect, call.id);
  if (id !== call.id) return { ...rest, id };
  return added === undefined ? call : rest;
}

const idFor = ({ callId }: Dialect, id: unknown): unknown =>
  callId && typeof id === 'string' ? callId(id) : id;
