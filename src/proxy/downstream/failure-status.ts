import type { Cause } from '../../interrupts/interruption.ts';
import { errorStatus, isErrorCode } from '../../lib/errors.ts';
import { isObject } from '../../lib/json.ts';

/** In-band errors name no status; these are what the provider would have answered with in time. */
export const PERMANENT_STATUS: Partial<Record<Cause, number>> = {
  context_overflow: 400,
  invalid_request: 400,
  unauthorised: 401,
  model_not_found: 404,
  content_filter: 400,
  quota: 429,
};

/** The response that an error event, in the OpenAI shape, would have been: its status, and headers about it. */
export function failureStatus(error: object): {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
} {
  const { code, holdfast }: { readonly code?: unknown; readonly holdfast?: unknown } = error;
  const details = isObject(holdfast) ? holdfast : {};
  const own = isErrorCode(code) ? errorStatus(code) : errorStatus('stream_interrupted');
  const isLimit = code === 'run_too_large' || code === 'memory_exhausted';
  const status = isLimit ? own : (PERMANENT_STATUS[details.cause as Cause] ?? own);
  // SDKs would ask again after a status like this.
  const isFinal = details.retryable === false;
  return { status, headers: isFinal ? { 'x-should-retry': 'false' } : retryAfter(details.retry_after_ms) };
}

/** What the provider asked us to wait, its client is to wait. */
export const retryAfter = (retry_after_ms: unknown): Readonly<Record<string, string>> =>
  typeof retry_after_ms === 'number' ? { 'retry-after': String(Math.ceil(retry_after_ms / 1000)) } : {};
