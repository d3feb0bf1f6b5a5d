import type { Cause, Clock, Evidence, Interruption, Phase } from './interruption.ts';
import type { ProviderError } from './provider-error.ts';

/** How an attempt ended, as observed. {@link classify} interprets it. */
export type AttemptEnd =
  /** The body ended cleanly. `done`: `[DONE]` had arrived. `residue`: an error found outside any event. */
  | { readonly kind: 'eof'; readonly done: boolean; readonly residue?: ProviderError }
  /** The connection failed, or one of our clocks ran out and we closed it. */
  | { readonly kind: 'broken'; readonly code: string; readonly goaway?: number; readonly clock?: Clock }
  /** The provider answered with an error instead of a stream. */
  | {
      readonly kind: 'refused';
      readonly status: number;
      readonly content_type: string;
      /** Set if the body has an encoding that the request did not accept. */
      readonly content_encoding?: string;
      readonly error: ProviderError | undefined;
      readonly retry_after_ms?: number;
    }
  /** An error inside the stream. */
  | { readonly kind: 'error_event'; readonly error: ProviderError }
  /** A failure reported as a finish reason. */
  | { readonly kind: 'bad_finish'; readonly reason: string; readonly status: number }
  /** An unreadable event, which may have carried part of the answer. */
  | { readonly kind: 'malformed_event' }
  /** The answer finished, but its tool arguments or its document can't be parsed. */
  | { readonly kind: 'unusable'; readonly what: 'arguments' | 'document' }
  | { readonly kind: 'seam_rejected'; readonly reason: string }
  /** The replica that ran the attempt was lost. */
  | { readonly kind: 'replica_lost' }
  /** The attempt reached one of our limits. */
  | { readonly kind: 'limit'; readonly limit: string };

/** Used for responses that make no sense. */
const BAD_GATEWAY = 502;
const OVERLOADED = 529;

/**
 * Interprets the end of an attempt. `phase`: the last phase it reached. `wall_ms`: current time, in milliseconds since
 * 1970.
 */
export function classify(end: AttemptEnd, phase: Phase, wall_ms: number): Interruption {
  switch (end.kind) {
    case 'eof':
      if (end.residue)
        return fromError(end.residue, phase, { kind: 'error_event', type: wordOf(end.residue) }, wall_ms);
      return { cause: 'connection_reset', phase: 'eof', evidence: { kind: 'clean_eof', done: end.done } };
    case 'broken':
      return broken(end, phase);
    case 'refused':
      return refused(end, phase, wall_ms);
    case 'error_event':
      return fromError(end.error, phase, { kind: 'error_event', type: wordOf(end.error) }, wall_ms);
    case 'bad_finish':
      return fromStatus(end.status, phase, { kind: 'finish_reason', reason: end.reason });
    case 'malformed_event':
      return fromStatus(BAD_GATEWAY, phase, { kind: 'malformed_event' });
    case 'unusable':
      return fromStatus(BAD_GATEWAY, phase, { kind: `unparsable_${end.what}` });
    case 'seam_rejected':
      return fromStatus(BAD_GATEWAY, phase, { kind: 'seam_rejected', reason: end.reason });
    case 'replica_lost':
      return { cause: 'connection_reset', phase, evidence: { kind: 'replica_lost' } };
    case 'limit':
      return { cause: 'invalid_request', phase, evidence: { kind: 'limit', limit: end.limit } };
  }
}

function broken(end: Extract<AttemptEnd, { kind: 'broken' }>, phase: Phase): Interruption {
  if (end.clock) return { cause: 'idle_stall', phase, evidence: { kind: 'clock', clock: end.clock } };
  if (end.goaway !== undefined)
    return { cause: 'goaway', phase, evidence: { kind: 'goaway', code: end.goaway } };
  return { cause: 'connection_reset', phase, evidence: { kind: 'transport', code: end.code } };
}

function refused(end: Extract<AttemptEnd, { kind: 'refused' }>, phase: Phase, wall_ms: number): Interruption {
  const { status, error, content_type, content_encoding, retry_after_ms } = end;
  const isSuccess = status >= 200 && status < 300;
  const form = { content_type, ...(content_encoding !== undefined && { content_encoding }) };
  const evidence: Evidence = isSuccess ? { kind: 'not_a_stream', ...form } : { kind: 'status', status };
  const known: ProviderError = { words: [], message: '', ...error };
  const interruption = fromError(status >= 400 ? { ...known, status } : known, phase, evidence, wall_ms);
  return {
    // Redirects and HTML pages count as a 502, because neither is an answer.
    ...(interruption.cause === 'provider_5xx' && { status: BAD_GATEWAY }),
    ...interruption,
    ...(retry_after_ms !== undefined && { retry_after_ms }),
  };
}

function fromError(error: ProviderError, phase: Phase, evidence: Evidence, wall_ms: number): Interruption {
  const cause = causeOf(error, phase);
  const status = error.status ?? STATUS_OF_WORD.find(([words]) => says(error, words))?.[1];
  const { retry_at_ms } = error;
  const untilThen_ms = retry_at_ms === undefined ? undefined : Math.max(0, retry_at_ms - wall_ms);
  const retry_after_ms = error.retry_after_ms ?? untilThen_ms;
  return {
    cause,
    phase,
    evidence,
    ...(status !== undefined && { status }),
    ...(error.message !== '' && { message: error.message }),
    ...(retry_after_ms !== undefined && { retry_after_ms }),
  };
}

function fromStatus(status: number, phase: Phase, evidence: Evidence): Interruption {
  return { cause: CAUSE_OF_STATUS[status] ?? 'provider_5xx', phase, evidence, status };
}

/** Some providers put a whole sentence where a code belongs. */
const WORD_CHARACTERS_MAX = 64;

const wordOf = (error: ProviderError): string => (error.words[0] ?? '').slice(0, WORD_CHARACTERS_MAX);

const says = (error: ProviderError, words: RegExp): boolean => error.words.some((word) => words.test(word));

/** The first match wins. Types and codes decide; the status counts only if none of them match. */
const CAUSE_OF_WORD: readonly (readonly [RegExp, Cause])[] = [
  // Listed first, because the accompanying code names a quota although the limit is per minute.
  [/too_many_(?:requests|tokens)_error/, 'rate_limited'],
  [
    /insufficient_quota|quota_?exceeded|exceeded_current_quota|billing|credit_balance|spend_limit|payment_required|arrearage/,
    'quota',
  ],
  [/context_length_exceeded|context_window_exceeded|string_above_max_length/, 'context_overflow'],
  [/content_filter|content_policy|moderation|responsible_?ai|data_?inspection/, 'content_filter'],
  [
    /rate_limit|too_many_requests|limit_requests|resource_exhausted|slow_down|throttl|capacity_exceeded/,
    'rate_limited',
  ],
  [
    /overloaded|unavailable|server_error|internal|api_error|timeout|bad_gateway|upstream|backend|streamerror/,
    'provider_5xx',
  ],
  [/model_not_found|not_?found_?error|resource_?not_?found|model_not_available/, 'model_not_found'],
  [
    /authentication|unauthori[sz]ed|unauthenticated|permission|forbidden|invalid_api_key|access_?denied/,
    'unauthorised',
  ],
  [
    /invalid_request|request_too_large|invalid_argument|bad_request|badrequest|validation|unprocessable/,
    'invalid_request',
  ],
];

const STATUS_OF_WORD: readonly (readonly [RegExp, number])[] = [
  [/overloaded/, OVERLOADED],
  [/unavailable/, 503],
  [/timeout/, 504],
  [/bad_gateway|upstream|backend|streamerror/, BAD_GATEWAY],
  [/server_error|internal|api_error/, 500],
  [
    /rate_limit|too_many_(?:requests|tokens)|limit_requests|resource_exhausted|slow_down|throttl|capacity_exceeded/,
    429,
  ],
];

const BAD_REQUESTS: ReadonlySet<number | undefined> = new Set([400, 413, 422]);

const CAUSE_OF_STATUS: Readonly<Record<number, Cause>> = {
  401: 'unauthorised',
  402: 'quota',
  403: 'unauthorised',
  404: 'model_not_found',
  // The provider's timeout for the connection, not an error in the request.
  408: 'provider_5xx',
  409: 'provider_5xx',
  429: 'rate_limited',
};

function causeOf(error: ProviderError, phase: Phase): Cause {
  const { status, message } = error;
  const word = CAUSE_OF_WORD.find(([words]) => says(error, words))?.[1];
  const saysBadRequest = word === 'invalid_request' || (word === undefined && BAD_REQUESTS.has(status));
  if (saysBadRequest && saysOverflow(message)) return 'context_overflow';
  if (word) return word;
  if (status === undefined || status >= 500) return 'provider_5xx';
  // A request that is already being answered can't be invalid: TGI reports every failure within a stream as 422.
  const isBeingAnswered = phase !== 'connect' && phase !== 'first_token';
  return CAUSE_OF_STATUS[status] ?? (isBeingAnswered ? 'provider_5xx' : 'invalid_request');
}

/** Most providers report overflow in prose only. We trust it only next to a status or type for a bad request. */
const OVERFLOW =
  /prompt is too long|exceeds the (?:context window|available context size)|input token count.*exceeds|maximum (?:prompt|context) length|reduce the length of the messages|greater than the context length|exceeded model token limit|too large for model|input is too long|exceed context limit|longer than the (?:maximum model|model's context) length|input length .*exceeds the maximum allowed|max_new_tokens` must be <=|inputs` must have less than/i;
/** Messages about token-per-minute limits also mention exceeded tokens. */
const RATE_WORDS = /rate limit|per minute|tpm\b|quota/i;

const saysOverflow = (message: string): boolean => OVERFLOW.test(message) && !RATE_WORDS.test(message);

/** The code used if no error in the `cause` chain has one. */
const UNKNOWN_TRANSPORT_CODE = 'UNKNOWN';

/** Deep enough for every real chain. The limit protects against errors built by third-party code. */
const ERRORS_MAX = 32;

/**
 * From most to least telling. The operating system and TLS know why a connection broke; HTTP layers know how;
 * undici's own wrappers often only know that it did.
 */
const RANKS: readonly RegExp[] = [
  // Hides the errors of its connection attempts, but names the limit that expired.
  /^UND_ERR_CONNECT_TIMEOUT$/,
  /^(ERR_SSL_|ERR_TLS_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_MISMATCH$)/,
  /^E(?!RR_)[A-Z0-9_]+$/,
  /^(ERR_HTTP2_|HPE_)/,
  /^(?!UND_ERR_(SOCKET|INFO|ABORTED)$|UND_ERR$|ABORT_ERR$)/,
  /^/,
];

/**
 * The most specific error code (`ECONNRESET`, `ERR_HTTP2_STREAM_ERROR`, `UND_ERR_SOCKET`, …) among an error, its causes
 * and the members of an AggregateError. Outer errors win ties; the default is `UNKNOWN`. Messages are ignored. undici 8
 * dropped the codes of parser errors, which are reported as `HPE_UNKNOWN`.
 */
export function transportCode(error: unknown): string {
  const codes = codesOf(error);
  for (const rank of RANKS) {
    const code = codes.find((candidate) => rank.test(candidate));
    if (code !== undefined) return code;
  }
  return UNKNOWN_TRANSPORT_CODE;
}

function codesOf(error: unknown): string[] {
  const codes: string[] = [];
  const seen = new Set<unknown>([error]);
  // A set also iterates over entries added during the loop: this walks breadth first and visits each error once.
  for (const candidate of seen) {
    if (typeof candidate !== 'object' || candidate === null) continue;
    const { name, code, cause, errors } = candidate as Record<'name' | 'code' | 'cause' | 'errors', unknown>;
    if (typeof code === 'string' && code !== '') codes.push(code);
    else if (name === 'HTTPParserError') codes.push('HPE_UNKNOWN');
    for (const inner of [cause, ...(Array.isArray(errors) ? errors : [])]) {
      if (seen.size < ERRORS_MAX) seen.add(inner);
    }
  }
  return codes;
}
