/** Response headers under lower-case names. */
type Headers = Readonly<Record<string, string | string[] | undefined>>;

const SECOND_MS = 1_000;
const UNITS_MS = { h: 3_600_000, m: 60_000, s: SECOND_MS, ms: 1 } as const;
const DECIMAL = /^\d+(\.\d+)?$/;
/** `17s`, `34.07s`, `1h16m0.667s`: the JSON form of a protobuf duration, and Go's. */
const DURATION = /^(\d+(\.\d+)?(h|ms|m|s))+$/;
/** The only date format still in use. `Date.parse` alone accepts nearly any number as a year. */
const HTTP_DATE = /^[A-Z][a-z]{2,8}, .*GMT$/;

/**
 * How long a response asks the client to wait, in milliseconds: `retry-after-ms`, else `retry-after` in seconds or as a
 * date. A date in the past yields 0; values that don't parse, including negative numbers, yield `undefined`. Not
 * capped.
 *
 * This ignores `x-ratelimit-reset-*` on purpose: it says when a bucket is full again, not when the next request fits,
 * and providers that send it add `retry-after` to every 429.
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
 * The same from an error object in a body or an event: `retry_after_ms`, `retry_after` or `retry_after_seconds`, in the
 * object or its `metadata`; `details[].retryDelay` (Google); response headers quoted in `headers` or `metadata.headers`
 * (OpenRouter). An event has no headers of its own, so a quoted `x-ratelimit-reset*` is the last resort.
 */
export function retryAfterFromError(error: unknown): number | undefined {
  const { fields, metadata, headers } = hintsIn(error);
  return (
    delayIn(fields) ??
    delayIn(metadata) ??
    googleDelay(fields.details) ??
    delay(headers['retry-after-ms'], 1) ??
    delay(headers['retry-after'], SECOND_MS) ??
    untilReset(headers)
  );
}

/** The same for a hint given as a point in time, in milliseconds since 1970. */
export function retryAtFromError(error: unknown): number | undefined {
  const { fields, metadata, headers } = hintsIn(error);
  return (
    dateIn(fields.retry_after) ??
    dateIn(metadata.retry_after) ??
    dateIn(headers['retry-after']) ??
    dateIn(headers['x-ratelimit-reset']) ??
    epochIn(headers['x-ratelimit-reset'])
  );
}

function hintsIn(error: unknown) {
  const fields = fieldsOf(error);
  const metadata = fieldsOf(fields.metadata);
  const headers: Record<string, string> = {};
  const quoted = { ...fieldsOf(fields.headers), ...fieldsOf(metadata.headers) };
  for (const [name, value] of Object.entries(quoted)) headers[name.toLowerCase()] = String(value);
  return { fields, metadata, headers };
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

/** Larger numbers are timestamps in seconds or milliseconds, not delays. */
const EPOCH_S_MIN = 1e9;
const EPOCH_MS_MIN = 1e12;
const RESETS = ['x-ratelimit-reset', 'x-ratelimit-reset-requests', 'x-ratelimit-reset-tokens'] as const;

/** Which limit was hit is unknown, so wait for the latest reset. */
function untilReset(headers: Readonly<Record<string, string>>): number | undefined {
  const delays = RESETS.map((name) => {
    const value = headers[name];
    const seconds_ms = delay(value, SECOND_MS);
    return seconds_ms === undefined
      ? duration(value)
      : seconds_ms < EPOCH_S_MIN * SECOND_MS
        ? seconds_ms
        : undefined;
  });
  const told = delays.filter((found) => found !== undefined);
  return told.length > 0 ? Math.max(...told) : undefined;
}

function epochIn(value: string | undefined): number | undefined {
  const epoch = delay(value, 1);
  if (epoch === undefined || epoch < EPOCH_S_MIN) return undefined;
  return epoch < EPOCH_MS_MIN ? epoch * SECOND_MS : epoch;
}

function delay(value: unknown, unit_ms: number): number | undefined {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string' || !DECIMAL.test(text.trim())) return undefined;
  const delay_ms = Number(text) * unit_ms;
  return Number.isFinite(delay_ms) ? delay_ms : undefined;
}

function untilDate(value: string | undefined, wall_ms: number): number | undefined {
  const date_ms = dateIn(value);
  return date_ms === undefined ? undefined : Math.max(0, date_ms - wall_ms);
}

function dateIn(value: unknown): number | undefined {
  if (typeof value !== 'string' || !HTTP_DATE.test(value.trim())) return undefined;
  const date_ms = Date.parse(value);
  return Number.isNaN(date_ms) ? undefined : date_ms;
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
