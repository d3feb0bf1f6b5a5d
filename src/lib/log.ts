import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino';

/** Code never logs keys or prompts deliberately. This catches objects that contain one by accident. */
const SECRET_FIELDS: ReadonlySet<string> = new Set([
  'authorization',
  'api-key',
  'x-api-key',
  'cookie',
  'api_key',
  'secret',
  'signature',
  'headers',
  'body',
  'messages',
  'thread',
  'conversation',
  'idempotency-key',
  'records',
  'tail',
  'text',
  'reasoning',
]);

/** Deeper than anything meant for the log. */
const DEPTH_MAX = 6;

/** Writes JSON lines, by default to standard output. Lines about a run identify it as `run`. */
export function createLogger(
  level: NonNullable<LoggerOptions['level']>,
  destination: DestinationStream = standardOutput(),
): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: {
        level: (label) => ({ level: label }),
        log: (fields) => loggedFields(fields, 0),
      },
      // Errors are already plain fields here; pino's serializer would merge the cause into the message.
      serializers: { err: (error: unknown) => error },
    },
    destination,
  );
}

export const standardOutput = (): DestinationStream =>
  pino.destination({ dest: process.stdout.fd, sync: true }).on('error', tolerateClosedTerminal);

/** A closed terminal accepts no more lines, which must not end the streams that are draining. */
export function tolerateClosedTerminal(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EIO') throw error;
}

const loggedFields = (fields: Record<string, unknown>, depth: number): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      SECRET_FIELDS.has(name.toLowerCase()) ? '[redacted]' : loggedValue(value, depth + 1),
    ]),
  );

/** Only plain objects are expanded, because sockets and requests reference everything. */
function loggedValue(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (depth > DEPTH_MAX) return '[deep]';
  if (value instanceof Error) return loggedError(value, depth);
  if (Array.isArray(value)) return value.map((item) => loggedValue(item, depth + 1));
  const name = value.constructor?.name ?? 'Object';
  return name === 'Object' ? loggedFields({ ...value }, depth) : `[${name}]`;
}

/** Other error properties are dropped, because libraries attach requests and headers to errors. */
function loggedError(error: Error, depth: number): object {
  const { code } = error as { code?: unknown };
  return {
    type: error.name,
    message: error.message,
    ...(typeof code === 'string' && { code }),
    stack: error.stack,
    ...(error.cause !== undefined && { cause: loggedValue(error.cause, depth + 1) }),
  };
}
