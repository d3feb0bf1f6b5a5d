/**
 * Every error Holdfast itself answers with: `code` → status, OpenAI error type and message template.
 * Messages say what to do about it. Errors of a provider are passed on as they came and are not listed here.
 */
export const ERRORS = {
  invalid_json: {
    status: 400,
    type: 'invalid_request_error',
    message: 'The request body is not valid JSON: {detail}',
  },
  missing_field: {
    status: 400,
    type: 'invalid_request_error',
    message: "Missing required parameter: '{param}' must be {expected}.",
  },
  invalid_field: {
    status: 400,
    type: 'invalid_request_error',
    message: "Invalid value for '{param}': it must be {expected}.",
  },
  not_found: {
    status: 404,
    type: 'invalid_request_error',
    message: 'Nothing is served at {method} {path}; the API is under /v1.',
  },
  model_not_found: {
    status: 404,
    type: 'invalid_request_error',
    message: "No route serves the model '{model}'; add one under 'routes' or ask for a model that has one.",
  },
  request_timeout: {
    status: 408,
    type: 'invalid_request_error',
    message: 'The request did not arrive in time.',
  },
  body_too_large: {
    status: 413,
    type: 'invalid_request_error',
    message: 'The request body is larger than {limit_bytes} bytes (limits.body_bytes).',
  },
  unsupported_media_type: {
    status: 415,
    type: 'invalid_request_error',
    message: 'Send the request body as content-type: application/json, without content-encoding.',
  },
  headers_too_large: {
    status: 431,
    type: 'invalid_request_error',
    message: 'The request headers are larger than {limit_bytes} bytes (limits.header_bytes).',
  },
  bad_request: {
    status: 400,
    type: 'invalid_request_error',
    message: 'The request is not valid HTTP.',
  },
  not_recoverable: {
    status: 502,
    type: 'stream_interrupted',
    message: 'The stream was interrupted and this request cannot be continued: {reason}',
  },
  run_too_large: {
    status: 502,
    type: 'stream_interrupted',
    message: 'The answer is larger than {limit_bytes} bytes (limits.run_bytes).',
  },
  stream_interrupted: {
    status: 502,
    type: 'stream_interrupted',
    message: 'The stream was interrupted and could not be recovered: {reason}',
  },
  upstream_unreachable: {
    status: 502,
    type: 'upstream_error',
    message: "The upstream '{upstream}' could not be reached ({reason}).",
  },
  upstream_unavailable: {
    status: 503,
    type: 'upstream_error',
    message: "The upstream '{upstream}' is not able to answer now ({reason}); try again.",
  },
  shutting_down: {
    status: 503,
    type: 'server_error',
    message: 'This replica is shutting down; try again.',
  },
  upstream_timeout: {
    status: 504,
    type: 'upstream_error',
    message: "The upstream '{upstream}' did not answer in time.",
  },
  internal_error: { status: 500, type: 'server_error', message: 'An unexpected error occurred.' },
} as const satisfies Record<string, { status: number; type: string; message: string }>;

export type ErrorCode = keyof typeof ERRORS;

type Placeholder<Template> = Template extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Placeholder<Rest>
  : never;
type Values<Code extends ErrorCode> = Record<Placeholder<(typeof ERRORS)[Code]['message']>, string | number>;
/** The template's values, required exactly when the template has any. */
type Arguments<Code extends ErrorCode> = [Placeholder<(typeof ERRORS)[Code]['message']>] extends [never]
  ? [values?: Readonly<Record<string, never>>]
  : [values: Readonly<Values<Code>>];

/** The `error` object of the OpenAI error shape. */
export interface ErrorObject {
  readonly message: string;
  readonly type: string;
  /** The request field at fault, if one is. */
  readonly param: string | null;
  readonly code: string;
}

export const errorStatus = (code: ErrorCode): number => ERRORS[code].status;

export function errorObject<Code extends ErrorCode>(code: Code, ...[values]: Arguments<Code>): ErrorObject {
  const { type, message } = ERRORS[code];
  const known: Readonly<Partial<Record<string, string | number>>> = values ?? {};
  return {
    message: message.replace(/\{(\w+)\}/g, (_, name: string) => String(known[name])),
    type,
    param: known.param?.toString() ?? null,
    code,
  };
}

/** The JSON body `{"error": {message, type, param, code}}`. */
export function errorBody<Code extends ErrorCode>(code: Code, ...values: Arguments<Code>): string {
  return JSON.stringify({ error: errorObject(code, ...values) });
}

/** Thrown where a request has to be refused; the server answers with its status and body. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly body: string;

  constructor(error: ErrorObject, code: ErrorCode) {
    super(error.message);
    this.code = code;
    this.status = errorStatus(code);
    this.body = JSON.stringify({ error });
  }
}

export function apiError<Code extends ErrorCode>(code: Code, ...values: Arguments<Code>): ApiError {
  return new ApiError(errorObject(code, ...values), code);
}
