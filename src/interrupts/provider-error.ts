import { isObject } from '../lib/json.ts';
import { retryAfterFromError, retryAtFromError } from './retry-after.ts';

/** An error object from a provider's body or event, normalised. */
export interface ProviderError {
  /** A real HTTP status, if a field or a code contains one. */
  readonly status?: number;
  /** `type` and `code` in lower case, which decisions may rely on. */
  readonly words: readonly string[];
  /** For people, and for the few facts that providers report in prose only. */
  readonly message: string;
  readonly retry_after_ms?: number;
  /** The same hint as a point in time, in milliseconds since 1970, if the provider gave only that. */
  readonly retry_at_ms?: number;
}

/**
 * Finds the error in a parsed event or body: nested (`{"error": {…}}`, OpenAI and most), a string, wrapped in an
 * array (Gemini), or not nested at all (Mistral, Cerebras, old vLLM, xAI). `undefined` when there is none.
 */
export function providerErrorIn(value: unknown): ProviderError | undefined {
  if (Array.isArray(value)) return providerErrorIn(value[0]);
  if (!isObject(value)) return undefined;
  const { error } = value;
  if (typeof error === 'string' && error !== '') return fromObject({ ...value, message: error });
  if (isObject(error)) return fromObject(error);
  const unnested = value.object === 'error' || value.type === 'error';
  const bare =
    value.choices === undefined && typeof value.message === 'string' && isWord(value.type ?? value.code);
  return unnested || bare ? fromObject(value) : undefined;
}

/** Like {@link providerErrorIn}, for a response whose status is already an error: a bare message is enough. */
export function refusalErrorIn(value: unknown): ProviderError | undefined {
  const error = providerErrorIn(value);
  if (error) return error;
  const message = isObject(value) ? proseOf(value) : '';
  return message === '' ? undefined : { words: [], message };
}

function fromObject(error: Record<string, unknown>): ProviderError {
  const { message, http_status_code, status_code, metadata } = error;
  const words = [error.type, error.code, error.status, error.error_type]
    .filter(isWord)
    .map((word) => String(word).toLowerCase());
  const status =
    statusOf(http_status_code) ??
    statusOf(status_code) ??
    words.map(statusOf).find((found) => found !== undefined);
  const retry_after_ms = retryAfterFromError(error);
  const retry_at_ms = retry_after_ms === undefined ? retryAtFromError(error) : undefined;
  // A gateway's own message says only that an error occurred, so append the quoted one.
  const quoted = quotedIn(isObject(metadata) ? metadata.raw : undefined);
  return {
    ...(status !== undefined && { status }),
    words,
    message: [proseOf(message), quoted].filter(Boolean).join(': '),
    ...(retry_after_ms !== undefined && { retry_after_ms }),
    ...(retry_at_ms !== undefined && { retry_at_ms }),
  };
}

/** The upstream provider's body as quoted by a gateway, usually as text. */
function quotedIn(raw: unknown): string {
  if (typeof raw !== 'string') return proseOf(raw);
  try {
    return proseOf(JSON.parse(raw)) || raw.slice(0, PROSE_CHARACTERS_MAX);
  } catch {
    return raw.slice(0, PROSE_CHARACTERS_MAX);
  }
}

/** Providers control these bodies, so depth and length are bounded. */
const PROSE_DEPTH_MAX = 4;
const PROSE_CHARACTERS_MAX = 4096;
const PROSE_PARTS_MAX = 16;

/** The text of a message, which may also be a list of problems or an object that wraps it. */
function proseOf(value: unknown, depth = PROSE_DEPTH_MAX): string {
  if (typeof value === 'string') return value.slice(0, PROSE_CHARACTERS_MAX);
  if (depth === 0) return '';
  if (Array.isArray(value)) {
    const parts = value.slice(0, PROSE_PARTS_MAX).map((part) => proseOf(part, depth - 1));
    return parts.filter(Boolean).join('; ').slice(0, PROSE_CHARACTERS_MAX);
  }
  if (!isObject(value)) return '';
  return proseOf(value.message ?? value.Message ?? value.msg ?? value.detail ?? value.error, depth - 1);
}

function statusOf(value: unknown): number | undefined {
  const status = typeof value === 'string' ? Number(value) : value;
  return typeof status === 'number' && Number.isInteger(status) && status >= 400 && status < 600
    ? status
    : undefined;
}

const isWord = (value: unknown): value is string | number =>
  typeof value === 'string' || typeof value === 'number';

/** Failures that some providers report as finish reasons, with the equivalent status. */
const FAILURES: ReadonlyMap<string, number> = new Map([
  ['error', 502],
  ['abort', 502],
  ['aborted', 502],
  ['insufficient_system_resource', 503],
  ['overloaded_error', 529],
  ['api_error', 500],
  ['server_error', 500],
  ['network_error', 502],
  ['rate_limit_error', 429],
  ['timeout_error', 504],
]);

/** The HTTP status for a failure reported as a finish reason; `undefined` for unknown reasons. */
export const failureStatusOf = (reason: string): number | undefined => FAILURES.get(reason);
