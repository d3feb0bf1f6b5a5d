import type { Cause } from '../../interrupts/interruption.ts';
import { errorStatus, isErrorCode } from '../../lib/errors.ts';
import { isObject } from '../../lib/json.ts';

/** Statuses for in-band errors, which have none: what the provider would have answered before the stream. */
export const PERMANENT_STATUS: Partial<Record<Cause, number>> = {
  context_overflow: 400,
  invalid_request: 400,
  unauthorised: 401,
  model_not_found: 404,
  content_filter: 400,
  quota: 429,
};

/** The status and headers of the response that corresponds to an error event in the OpenAI format. */
export function failureStatus(error: object): {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
} {
  const { code, holdfast }: { readonly code?: unknown; readonly holdfast?: unknown } = error;
  const details = isObject(holdfast) ? holdfast : {};
  const own = isErrorCode(code) ? errorStatus(code) : errorStatus('stream_interrupted');
  const isLimit = code === 'run_too_large' || code === 'memory_exhausted';
  const status = isLimit ? own : (PERMANENT_STATUS[details.cause as Cause] ?? own);
  // SDKs would retry on such a status.
  const isFinal = details.retryable === false;
  return { status, headers: isFinal ? { 'x-should-retry': 'false' } : retryAfter(details.retry_after_ms) };
}

/** Passes the provider's requested wait on to the client. */
export const retryAfter = (retry_after_ms: unknown): Readonly<Record<string, string>> =>
  typeof retry_after_ms === 'number' ? { 'retry-after': String(Math.ceil(retry_after_ms / 1000)) } : {};
