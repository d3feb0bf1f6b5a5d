interface ErrorDescription {
  readonly status: number;
  readonly type: string;
  readonly message: string;
  readonly retry_after_ms?: number;
}

/** How long a client should wait before retrying, here or at another replica. */
const RETRY_AFTER_MS = 1000;

/** The same for a paused task, whose pause has no known end. */
const PAUSED_RETRY_AFTER_MS = 30_000;

/**
 * Every error that Holdfast itself returns: `code` → status, OpenAI error type and message template. Messages say what
 * to do. A provider's errors are passed on unchanged and aren't listed here. `retry_after_ms`: the same request can
 * succeed later.
 */
export const ERRORS = {
  invalid_json: {
    status: 400,
    type: 'invalid_request_error',
    message: "The request body isn't valid JSON: {detail}",
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
  conflicting_credentials: {
    status: 400,
    type: 'invalid_request_error',
    message:
      'The headers {header} and {other} carry different credentials; send only one, because a run belongs to one credential.',
  },
  not_found: {
    status: 404,
    type: 'invalid_request_error',
    message: "{method} {path} doesn't exist; the API is under /v1, and runs are under /holdfast/v1/runs.",
  },
  model_not_found: {
    status: 404,
    type: 'invalid_request_error',
    message: "No route serves the model '{model}'; add one under 'routes', or ask for a model that has one.",
  },
  unknown_client: {
    status: 401,
    type: 'invalid_request_error',
    message:
      "Only known clients may use this server's key: send the token you got from its operator instead of a provider's key.",
  },
  invalid_token: {
    status: 401,
    type: 'invalid_request_error',
    message:
      "The bearer token in Authorization doesn't identify the owner ({reason}); send a valid JWT from the issuer that this server trusts.",
  },
  route_not_allowed: {
    status: 403,
    type: 'invalid_request_error',
    message:
      "The client '{client}' isn't allowed to use {asked}; the operator can add routes under clients[].routes.",
  },
  origin_not_allowed: {
    status: 403,
    type: 'invalid_request_error',
    message: "Web pages from {origin} aren't allowed to use this API; add the origin to listen.cors_origins.",
  },
  faults_not_allowed: {
    status: 403,
    type: 'invalid_request_error',
    message:
      'This server injects no faults: set faults.allow_header to true where it is for tests, or leave the header Holdfast-Fault out.',
  },
  fault_not_injected: {
    status: 400,
    type: 'invalid_request_error',
    message:
      'The answer to this request passes through as it comes, so Holdfast-Fault has nothing to break; put `holdfast chaos` in front of the provider, or leave the header out.',
  },
  signature_invalid: {
    status: 403,
    type: 'invalid_request_error',
    message:
      "This URL's signature doesn't allow that for this run; use the URL exactly as your server got it.",
  },
  url_expired: {
    status: 403,
    type: 'invalid_request_error',
    message: 'This URL has expired; your server can ask for a new one (POST /holdfast/v1/runs/…/urls).',
  },
  reload_not_allowed: {
    status: 403,
    type: 'invalid_request_error',
    message:
      "Only programs on this replica's machine can reload its configuration, and web pages can't; ask from there, or send SIGHUP.",
  },
  configuration_invalid: {
    status: 422,
    type: 'invalid_request_error',
    message: "The configuration wasn't reloaded; the replica keeps the last one: {problems}",
  },
  run_not_found: {
    status: 404,
    type: 'invalid_request_error',
    message: "This run doesn't exist, or it has expired.",
  },
  task_not_found: {
    status: 404,
    type: 'invalid_request_error',
    message:
      "This task doesn't exist, or it has expired. A task begins with the answer to a request that names it in `Holdfast-Task`.",
  },
  task_paused: {
    status: 423,
    type: 'invalid_request_error',
    message:
      'The task is paused, and this request would be a new step; send it again once the task is resumed (POST /holdfast/v1/tasks/…/resume).',
    retry_after_ms: PAUSED_RETRY_AFTER_MS,
  },
  task_ended: {
    status: 410,
    type: 'invalid_request_error',
    message:
      'The task is {status}, which is final, so it takes no new steps; use another name in `Holdfast-Task`, or delete the task.',
  },
  task_deadline_passed: {
    status: 403,
    type: 'invalid_request_error',
    message:
      "The task's deadline has passed, and this request would be a new step; set a later deadline (PUT /holdfast/v1/tasks/…).",
  },
  task_budget_spent: {
    status: 402,
    type: 'invalid_request_error',
    message:
      'The task has spent {spent} of its {budget} tokens, and this request would be a new step; set a larger budget (PUT /holdfast/v1/tasks/…).',
  },
  cursor_ahead: {
    status: 409,
    type: 'invalid_request_error',
    message:
      'The cursor {cursor} is ahead of the checkpoint, which ends at {seq}; send the events after that as `tail` to /holdfast/v1/runs/{run}/resume.',
  },
  tail_incomplete: {
    status: 409,
    type: 'invalid_request_error',
    message:
      'The checkpoint of {run} ends at event {seq}, and the `tail` lacks events {missing_from} to {missing_to}; send a `tail` that includes them.',
  },
  tail_mismatch: {
    status: 409,
    type: 'invalid_request_error',
    message:
      "The `tail` can't be joined to {run} at event {cursor}: the run continued differently, the events belong to another run, or they end within a tool call that isn't stored; send the request again without `Holdfast-Run-Id` and `Last-Event-ID`.",
  },
  run_mismatch: {
    status: 422,
    type: 'invalid_request_error',
    message:
      'A different request began the run {run}; send that request, or this one without `Holdfast-Run-Id` and `Last-Event-ID`.',
  },
  idempotency_mismatch: {
    status: 422,
    type: 'invalid_request_error',
    message: 'This Idempotency-Key was used for a different request; use a new one.',
  },
  call_not_claimed: {
    status: 409,
    type: 'invalid_request_error',
    message:
      "This claim on the tool call isn't valid: it was released, has expired, or was never made. Claim the call before you run the tool.",
  },
  call_done: {
    status: 409,
    type: 'invalid_request_error',
    message: 'The tool call already has a result, which is final; claim the call to get it.',
  },
  claim_released: {
    status: 409,
    type: 'invalid_request_error',
    message: 'This claim on the tool call was released; claim the call with a new name.',
  },
  call_released_too_often: {
    status: 409,
    type: 'invalid_request_error',
    message: "The tool call was released {limit} times and can't be claimed again; give it a new key.",
  },
  result_too_large: {
    status: 413,
    type: 'invalid_request_error',
    message:
      'The result has {length} characters of JSON, and Holdfast stores at most {limit}; leave `result` out, and store it where you can find it again.',
  },
  too_many_runs: {
    status: 429,
    type: 'rate_limit_error',
    message:
      'This credential already has {limit} active runs on this replica ({setting}); wait for one to end.',
    retry_after_ms: RETRY_AFTER_MS,
  },
  request_timeout: {
    status: 408,
    type: 'invalid_request_error',
    message: "The request didn't arrive in time.",
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
  host_not_allowed: {
    status: 421,
    type: 'invalid_request_error',
    message: "This port doesn't accept the host name '{host}': use an address, or add {remedy}.",
  },
  upgrade_required: {
    status: 426,
    type: 'invalid_request_error',
    message:
      'Holdfast serves responses over HTTP, not over {protocol}: send POST /v1/responses with `"stream": true` instead. Clients that speak both switch by themselves.',
  },
  upgrade_not_supported: {
    status: 400,
    type: 'invalid_request_error',
    message: "This server doesn't support {protocol}: send the request without `Upgrade`.",
  },
  headers_too_large: {
    status: 431,
    type: 'invalid_request_error',
    message: 'The request headers are larger than {limit_bytes} bytes (limits.header_bytes).',
  },
  bad_request: {
    status: 400,
    type: 'invalid_request_error',
    message: "The request isn't valid HTTP.",
  },
  loop_detected: {
    status: 508,
    type: 'invalid_request_error',
    message:
      'This request has already passed through this server: an upstream leads back to it. Check the base_url of every upstream on the way.',
  },
  not_recoverable: {
    status: 502,
    type: 'stream_interrupted',
    message: "The stream was interrupted, and this kind of request can't be continued: {reason}",
  },
  tool_running: {
    status: 502,
    type: 'stream_interrupted',
    message:
      "The stream was interrupted while the provider ran {tools}: {reason}. It may have had its effect, so Holdfast didn't run it again: look for its effect before you send the request again.",
  },
  tools_not_carried: {
    status: 502,
    type: 'stream_interrupted',
    message:
      "The stream was interrupted after the provider had run {tools}: {reason}. No target takes the results back, so Holdfast didn't send the request again: the settled results are in `holdfast.parts`.",
  },
  run_too_large: {
    status: 502,
    type: 'stream_interrupted',
    message: 'The answer is larger than {limit_bytes} bytes (limits.run_bytes).',
  },
  run_cancelled: {
    status: 410,
    type: 'stream_interrupted',
    message: 'The run was cancelled.',
  },
  not_resumable: {
    status: 409,
    type: 'stream_interrupted',
    message:
      "The run ended with its replica, and its request wasn't stored; send the request again, with the run's id or as `request` to its /resume, or use `Holdfast-Resume: 1` from the start.",
  },
  run_not_routed: {
    status: 503,
    type: 'stream_interrupted',
    message:
      "The run ended with its replica, and this replica has no route for the model '{model}'; resume at another replica, or add a route.",
  },
  run_poisoned: {
    status: 502,
    type: 'stream_interrupted',
    message:
      'Holdfast gave the run up: one replica after another died with it, and none got any further (resume.max_takeovers).',
  },
  run_salvaged: {
    status: 502,
    type: 'stream_interrupted',
    message: "The run was interrupted and finalised as {status}; the delivered text isn't the whole answer.",
  },
  stream_interrupted: {
    status: 502,
    type: 'stream_interrupted',
    message: "The stream was interrupted and couldn't be recovered: {reason}",
  },
  upstream_unreachable: {
    status: 502,
    type: 'upstream_error',
    message: "Holdfast can't reach the upstream '{upstream}': {reason}.",
  },
  upstream_unavailable: {
    status: 503,
    type: 'upstream_error',
    message: "The upstream '{upstream}' can't answer now: {reason}. Try again.",
  },
  store_unavailable: {
    status: 503,
    type: 'server_error',
    message: "Holdfast can't reach its store now; try again.",
    retry_after_ms: RETRY_AFTER_MS,
  },
  identity_unavailable: {
    status: 503,
    type: 'server_error',
    message:
      "Holdfast can't check the token now, because it can't fetch the issuer's keys (owner.jwks_url); try again.",
    retry_after_ms: RETRY_AFTER_MS,
  },
  shutting_down: {
    status: 503,
    type: 'server_error',
    message: 'This replica is shutting down; try again.',
    retry_after_ms: RETRY_AFTER_MS,
  },
  no_worker: {
    status: 503,
    type: 'server_error',
    message: 'None of the workers answers; try again.',
    retry_after_ms: RETRY_AFTER_MS,
  },
  memory_exhausted: {
    status: 503,
    type: 'server_error',
    message:
      'This replica has no memory left: its current work already takes {limit_bytes} bytes (limits.memory_bytes); try again.',
    retry_after_ms: RETRY_AFTER_MS,
  },
  too_many_viewers: {
    status: 503,
    type: 'server_error',
    message: 'Too many clients are already watching runs; close a status page, or ask for /runs instead.',
    retry_after_ms: RETRY_AFTER_MS,
  },
  run_taken_over: {
    status: 503,
    type: 'server_error',
    message:
      'Another replica has taken the run over; send the request again, with the same `Idempotency-Key` or `Holdfast-Run-Id`.',
    retry_after_ms: RETRY_AFTER_MS,
  },
  upstream_timeout: {
    status: 504,
    type: 'upstream_error',
    message: "The upstream '{upstream}' didn't answer in time.",
  },
  internal_error: { status: 500, type: 'server_error', message: 'An unexpected error occurred.' },
} as const satisfies Record<string, ErrorDescription>;

export type ErrorCode = keyof typeof ERRORS;

type Placeholder<Template> = Template extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Placeholder<Rest>
  : never;
type Values<Code extends ErrorCode> = Record<Placeholder<(typeof ERRORS)[Code]['message']>, string | number>;
/** The template's values, required exactly if the template has placeholders. */
type Arguments<Code extends ErrorCode> = [Placeholder<(typeof ERRORS)[Code]['message']>] extends [never]
  ? [values?: Readonly<Record<string, never>>]
  : [values: Readonly<Values<Code>>];

/** The `error` object of the OpenAI error shape. */
export interface ErrorObject {
  readonly message: string;
  readonly type: string;
  /** The faulty request field, if any. */
  readonly param: string | null;
  readonly code: string;
}

export const errorStatus = (code: ErrorCode): number => ERRORS[code].status;

export const errorCodes = (): readonly ErrorCode[] => Object.keys(ERRORS) as ErrorCode[];

export const isErrorCode = (code: unknown): code is ErrorCode =>
  typeof code === 'string' && Object.hasOwn(ERRORS, code);

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

/** Thrown to refuse a request. The server answers with its status, headers and body. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;

  constructor(error: ErrorObject, code: ErrorCode) {
    super(error.message);
    this.code = code;
    this.status = errorStatus(code);
    this.headers = { 'content-type': 'application/json; charset=utf-8', ...retryHeaders(code) };
    this.body = JSON.stringify({ error });
  }
}

/** In milliseconds for clients that support it, in whole seconds for all. */
function retryHeaders(code: ErrorCode): Record<string, string> {
  const { retry_after_ms }: ErrorDescription = ERRORS[code];
  if (retry_after_ms === undefined) return {};
  return {
    'retry-after': String(Math.ceil(retry_after_ms / 1000)),
    'retry-after-ms': String(retry_after_ms),
  };
}

export function apiError<Code extends ErrorCode>(code: Code, ...values: Arguments<Code>): ApiError {
  return new ApiError(errorObject(code, ...values), code);
}
