/** Response headers under lower-case names. */
type Headers = Readonly<Record<string, string | string[] | undefined>>;

const SECOND_MS = 1_000;
const UNITS_MS = { h: 3_600_000, m: 60_000, s: SECOND_MS, ms: 1 } as const;
const DECIMAL = /^\d+(\.\d+)?$/;
/** `17s`, `34.07s`, `1h16m0.667s`: the JSON form of a protobuf duration, and Go's. */
const DURATION = /^(\d+(\.\d+)?(h|ms|m|s))+$/;
/** The one form of date that is sent today. `Date.parse` alone makes a year out of nearly any number. */
const HTTP_DATE = /^[A-Z][a-z]{2,8}, .*GMT$/;

/**
 * How long a response asks its client to wait, in milliseconds: `retry-after-ms`, else `retry-after` in seconds or
 * as a date. A date in the past is 0; what does not parse, negative numbers included, is `undefined`. Not capped.
 *
 * `x-ratelimit-reset-*` is left out on purpose: it tells when a bucket is full again, not when the next request
 * fits in, and the providers that send it add `retry-after` to every 429.
 */
export function retryAfterMs(headers: Headers, wall_ms: number): number | undefined {
  return (
    delay(single(headers['retry-after-ms']), 1) ??
    delay(single(headers['x-ms-retry-after-ms']), 1) ??
    delay(single(headers['retry-after']), SECOND_MS) ??
    untilDate(single(headers['retry-after']), wall_ms)
  );
}

/**
 * The same from an error object in a body or an event: `retry_after_ms`, `retry_after` or `retry_after_seconds`, in
 * the object or its `metadata`; `details[].retryDelay` (Google); response headers quoted in `metadata.headers`
 * (OpenRouter). Hints that name a point in time count only if `wall_ms` is given.
 */
export function retryAfterFromError(error: unknown, wall_ms?: number): number | undefined {
  const fields = fieldsOf(error);
  const metadata = fieldsOf(fields.metadata);
  return (
    delayIn(fields) ??
    delayIn(metadata) ??
    googleDelay(fields.details) ??
    quotedDelay(fieldsOf(metadata.headers), wall_ms)
  );
}

const delayIn = (fields: Record<string, unknown>): number | undefined =>
  delay(fields.retry_after_ms, 1) ??
  delay(fields.retry_after, SECOND_MS) ??
  delay(fields.retry_after_seconds, SECOND_MS);

function googleDelay(details: unknown): number | undefined {
  if (!Array.isArray(details)) return undefined;
  const delays = details.map((detail) => duration(fieldsOf(detail).retryDelay));
  return delays.find((found) => found !== undefined);
}

function quotedDelay(quoted: Record<string, unknown>, wall_ms: number | undefined): number | undefined {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(quoted)) headers[name.toLowerCase()] = String(value);
  if (wall_ms === undefined)
    return delay(headers['retry-after-ms'], 1) ?? delay(headers['retry-after'], SECOND_MS);
  return retryAfterMs(headers, wall_ms) ?? untilReset(headers['x-ratelimit-reset'], wall_ms);
}

/** OpenRouter's reset is in milliseconds since the epoch. What is not ahead is no such time: others count seconds. */
function untilReset(value: string | undefined, wall_ms: number): number | undefined {
  const reset_ms = delay(value, 1);
  return reset_ms !== undefined && reset_ms > wall_ms ? reset_ms - wall_ms : undefined;
}

function delay(value: unknown, unit_ms: number): number | undefined {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string' || !DECIMAL.test(text.trim())) return undefined;
  const delay_ms = Number(text) * unit_ms;
  return Number.isFinite(delay_ms) ? delay_ms : undefined;
}

function untilDate(value: string | undefined, wall_ms: number): number | undefined {
  if (value === undefined || !HTTP_DATE.test(value.trim())) return undefined;
  const date_ms = Date.parse(value);
  return Number.isNaN(date_ms) ? undefined : Math.max(0, date_ms - wall_ms);
}

function duration(value: unknown): number | undefined {
  if (typeof value !== 'string' || !DURATION.test(value)) return undefined;
  let total_ms = 0;
  for (const [, amount, unit] of value.matchAll(/([\d.]+)(h|ms|m|s)/g)) {
    total_ms += Number(amount) * UNITS_MS[unit as keyof typeof UNITS_MS];
  }
  return total_ms;
}

const single = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value[0] : value;

const fieldsOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
