import { isObject } from '../../../lib/json.ts';
import type { Delta, Usage } from '../../../plans/delta.ts';
import { type Json, textIn } from './event.ts';

/** What the end of an answer says anew; everything else stays as its beginning has it. */
const CHANGING: ReadonlySet<string> = new Set([
  'status',
  'output',
  'usage',
  'error',
  'incomplete_details',
  'completed_at',
  'service_tier',
]);

/** Causes that clients know a code of, which may keep them from asking again. */
const CODES: Readonly<Record<string, string>> = {
  context_overflow: 'context_length_exceeded',
  rate_limited: 'rate_limit_exceeded',
  quota: 'insufficient_quota',
  invalid_request: 'invalid_prompt',
};

interface Whole {
  /** As the answer was begun. */
  readonly first: Json;
  /** As its last attempt has ended it. */
  readonly last: Json;
  readonly output: readonly Json[];
  readonly reason: string;
  /** In place of what the last attempt reported. */
  readonly usage: Usage | undefined;
}

/** The response that ends an answer as if one attempt had produced all of it. */
export function wholeResponse({ first, last, output, reason, usage }: Whole): Json {
  const kept = Object.fromEntries(Object.entries(first).filter(([field]) => !CHANGING.has(field)));
  const incomplete = incompleteReasonOf(reason);
  return {
    ...first,
    error: null,
    status: incomplete === undefined ? 'completed' : 'incomplete',
    incomplete_details: incomplete === undefined ? null : { reason: incomplete },
    ...last,
    ...kept,
    output,
    ...(usage && { usage: responsesUsage(usage) }),
  };
}

/** The event that ends an answer for this reason. */
export const endTypeOf = (reason: string): string =>
  incompleteReasonOf(reason) === undefined ? 'response.completed' : 'response.incomplete';

/** A finish reason in the words of the wire; `undefined` where the answer is complete. */
function incompleteReasonOf(reason: string): string | undefined {
  if (reason === 'length') return 'max_output_tokens';
  return reason === 'content_filter' ? reason : undefined;
}

/** What the last event says about the end. `type`: of the event; `hasCalls`: the client has calls to carry out. */
export function endOf(
  type: string,
  response: Json,
  hasCalls: boolean,
): readonly [Extract<Delta, { kind: 'finish' }>, ...Delta[]] {
  const usage = usageIn(response.usage);
  const finish = { kind: 'finish', reason: finishReasonOf(type, response, hasCalls) } as const;
  return usage ? [finish, { kind: 'usage', usage }] : [finish];
}

function finishReasonOf(type: string, { status, incomplete_details }: Json, hasCalls: boolean): string {
  if (type === 'response.cancelled' || status === 'cancelled') return 'cancelled';
  if (type !== 'response.incomplete') return hasCalls ? 'tool_calls' : 'stop';
  const why = isObject(incomplete_details) ? textIn(incomplete_details.reason) : '';
  return why === 'max_output_tokens' || why === '' ? 'length' : why;
}

/** Says that the answer continues. */
export const responseInProgress = ({ id, object, created_at, model }: Json): Json => ({
  id,
  object,
  created_at,
  status: 'in_progress',
  model,
  output: [],
});

/**
 * The fields of the event that says that the answer could not be finished. A response that has failed is an error to
 * some clients, and just a response to others, which raise whatever has an `error` at its top.
 */
export function failedResponse(first: Json, error: object): Json {
  const { message, holdfast } = error as { readonly message?: unknown; readonly holdfast?: unknown };
  const details: Json = isObject(holdfast) ? holdfast : {};
  const response = {
    ...first,
    id: first.id ?? details.stream_id ?? details.run_id ?? 'resp_unknown',
    object: 'response',
    created_at: first.created_at ?? details.created_at ?? 0,
    status: 'failed',
    error: { code: CODES[textIn(details.cause)] ?? 'server_error', message },
    incomplete_details: null,
    output: [],
    usage: null,
  };
  return { response, error };
}

/** The report of a response in the words of a delta; its details stay under their own names. */
function usageIn(usage: unknown): Usage | undefined {
  if (!isObject(usage) || typeof usage.output_tokens !== 'number') return undefined;
  const { input_tokens, output_tokens, total_tokens, ...details } = usage;
  const prompt_tokens = typeof input_tokens === 'number' ? input_tokens : 0;
  return {
    ...details,
    prompt_tokens,
    completion_tokens: output_tokens,
    total_tokens: typeof total_tokens === 'number' ? total_tokens : prompt_tokens + output_tokens,
  };
}

/** The same for clients, which rely on the details. */
function responsesUsage(usage: Usage): object {
  const { prompt_tokens, completion_tokens, total_tokens, ...details } = usage;
  return {
    input_tokens: prompt_tokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: completion_tokens,
    output_tokens_details: { reasoning_tokens: 0 },
    ...details,
    total_tokens,
  };
}
