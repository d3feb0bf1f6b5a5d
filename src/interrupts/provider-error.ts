import { retryAfterFromError } from './retry-after.ts';

/** An error object as providers put it into a body or an event, whatever its shape. */
export interface ProviderError {
  /** A real HTTP status, where the object or its words for it tell one. */
  readonly status?: number;
  /** `type` and `code` in lower case: what may be decided on. */
  readonly words: readonly string[];
  /** For people, and for the few facts that providers say in prose only. */
  readonly message: string;
  readonly retry_after_ms?: number;
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

function fromObject(error: Record<string, unknown>): ProviderError {
  const { message, http_status_code } = error;
  const words = [error.type, error.code, error.status]
    .filter(isWord)
    .map((word) => String(word).toLowerCase());
  const status = statusOf(http_status_code) ?? words.map(statusOf).find((found) => found !== undefined);
  const retry_after_ms = retryAfterFromError(error);
  return {
    ...(status !== undefined && { status }),
    words,
    message: typeof message === 'string' ? message : '',
    ...(retry_after_ms !== undefined && { retry_after_ms }),
  };
}

function statusOf(value: unknown): number | undefined {
  const status = typeof value === 'string' ? Number(value) : value;
  return typeof status === 'number' && Number.isInteger(status) && status >= 400 && status < 600
    ? status
    : undefined;
}

const isWord = (value: unknown): value is string | number =>
  typeof value === 'string' || typeof value === 'number';

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
