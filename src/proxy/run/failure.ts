import { type JournalFold, settledCalls } from '../../checkpoint/journal-fold.ts';
import type { RunId } from '../../checkpoint/store.ts';
import { type Cause, type Interruption, isPermanent } from '../../interrupts/interruption.ts';
import { type ErrorCode, type ErrorObject, errorObject, errorStatus } from '../../lib/errors.ts';
import { tailOf } from '../../lib/text.ts';
import type { GiveUp } from '../../plans/decide.ts';
import { type PartialAnswer, partsOf } from '../../plans/outcome.ts';
import type { SettledCall } from '../../plans/tool-call.ts';
import type { ProviderTool, Transcript } from '../../plans/transcript.ts';
import { failureStatus, PERMANENT_STATUS } from '../downstream/failure-status.ts';
import type { Target } from '../upstream/target.ts';
import { wireIn } from '../wires/registry.ts';
import type { Run } from './context/run.ts';

/** An error event contains at most this much from the end of each part, because the client already has all of it. */
const PART_CHARACTERS_MAX = 16_384;

export interface Failure {
  readonly interruption: Interruption;
  readonly why: GiveUp;
  /** Upstream requests made for the run. */
  readonly attempts: number;
  readonly created_at_ms: number;
  /** The `id` of the chunks sent to the client, if any. */
  readonly stream_id: string | undefined;
  /** Settled calls of an answer with several choices, which have no transcript. */
  readonly forwarded?: readonly SettledCall[];
}

export interface StoredFailure {
  readonly error: ErrorObject;
  readonly cause: string;
  readonly retryable: boolean;
}

/** The facts that an error reports about a failed run. */
interface FailedRun {
  readonly run: RunId;
  /** `undefined` if the journal has lost it. */
  readonly created_at_ms: number | undefined;
  /** The `id` of the chunks sent to the client. */
  readonly stream_id: string | undefined;
  /** Upstream requests made for it, if known. */
  readonly attempts?: number;
  readonly cause: string;
  readonly retryable: boolean;
  /** The wait that the provider asked for, in milliseconds. */
  readonly retry_after_ms?: number | undefined;
  /** The error's own message, repeated. */
  readonly message: string;
}

/** The error event that ends a stream that could not be finished. */
export function failureEvent(
  { id }: Run,
  transcript: Transcript,
  { interruption, why, attempts, created_at_ms, stream_id, forwarded = [] }: Failure,
): object {
  const { retry_after_ms } = interruption;
  // The cause for the client to act on. The message also contains the original interruption.
  const cause = why === 'context_full' ? 'context_overflow' : interruption.cause;
  const { reasoning, text, refusal, closedCalls, providerTools } = transcript;
  const calls = [...closedCalls, ...forwarded];
  const message = messageOf(interruption, why, attempts, providerTools);
  // Asked again from the beginning, the provider would run its tools again.
  const retryable = !isPermanent(cause) && why !== 'poisoned' && providerTools.length === 0;
  return {
    message,
    type: 'stream_interrupted',
    param: null,
    code: codeOf(interruption, why),
    holdfast: failureDetails(
      { run: id, created_at_ms, stream_id, attempts, cause, retryable, retry_after_ms, message },
      { reasoning, text, refusal, calls, providerTools },
    ),
  };
}

/** The error event for a run that is replayed from the store. `cause`: why it ended. */
export function storedFailureEvent(
  run: RunId,
  journal: JournalFold,
  { error, cause, retryable: mayRetry }: StoredFailure,
): object {
  const { header, events, reasoning, text, refusal, providerTools } = journal;
  const calls = settledCalls(journal);
  const { message } = error;
  const retryable = mayRetry && providerTools.length === 0;
  const created_at_ms = header?.created_at_ms;
  const first = events.find(({ payload }) => payload !== undefined)?.payload;
  const stream_id = first === undefined ? undefined : wireIn(header).delivered.idOf(first);
  return {
    ...error,
    holdfast: failureDetails(
      { run, created_at_ms, stream_id, cause, retryable, message },
      { reasoning, text, refusal, calls, providerTools },
    ),
  };
}

/** The failure as a response, for clients whose response was not opened yet. */
export function failureResponse(
  { target: { name: upstream } }: { readonly target: Pick<Target, 'name'> },
  { interruption }: Pick<Failure, 'interruption'>,
): { status: number; body: string; headers?: Readonly<Record<string, string>> } {
  const { cause, evidence, message } = interruption;
  if (evidence.kind === 'limit') {
    // The request is fine, contrary to what the interruption's cause says.
    const code = LIMIT_CODES[evidence.limit] ?? 'run_too_large';
    const told = `The answer is larger than ${evidence.limit} allows.`;
    const error = { message: told, type: 'stream_interrupted', param: null, code };
    return {
      ...failureStatus({ ...error, holdfast: { retryable: false } }),
      body: JSON.stringify({ error }),
    };
  }
  const own = PERMANENT_STATUS[cause];
  if (own !== undefined) {
    const error = { message: message ?? cause, type: 'upstream_error', param: null, code: cause };
    return { status: interruption.status ?? own, body: JSON.stringify({ error }) };
  }
  if (evidence.kind === 'clock') {
    return response('upstream_timeout', errorObject('upstream_timeout', { upstream }));
  }
  const reason = reasonOf(interruption);
  if (interruption.phase === 'connect' && evidence.kind === 'transport') {
    return response('upstream_unreachable', errorObject('upstream_unreachable', { upstream, reason }));
  }
  return response('upstream_unavailable', errorObject('upstream_unavailable', { upstream, reason }));
}

/** Adds the run's id to the body of one of our errors, for later requests about that run. */
export function withRunId(body: string, run_id: RunId): string {
  const { error } = JSON.parse(body) as { readonly error: object };
  return JSON.stringify({ error: { ...error, holdfast: { run_id } } });
}

const response = (code: ErrorCode, error: ErrorObject) => ({
  status: errorStatus(code),
  body: JSON.stringify({ error }),
});

/** Limits that concern more than a single answer. */
const LIMIT_CODES: Readonly<Partial<Record<string, ErrorCode>>> = {
  'limits.memory_bytes': 'memory_exhausted',
};

function codeOf({ evidence }: Interruption, why: GiveUp): ErrorCode {
  if (why === 'poisoned') return 'run_poisoned';
  if (why === 'request_unknown') return 'not_resumable';
  if (why === 'tool_running' || why === 'tools_not_carried') return why;
  if (evidence.kind === 'limit') return LIMIT_CODES[evidence.limit] ?? 'run_too_large';
  return why === 'not_recoverable' ? 'not_recoverable' : 'stream_interrupted';
}

function messageOf(
  interruption: Interruption,
  why: GiveUp,
  attempts: number,
  tools: readonly ProviderTool[],
): string {
  if (why === 'poisoned') return errorObject('run_poisoned').message;
  if (why === 'request_unknown') return errorObject('not_resumable').message;
  const reason = reasonOf(interruption);
  if (why === 'tool_running' || why === 'tools_not_carried')
    return errorObject(why, { reason, tools: namesOf(tools, why) }).message;
  if (why === 'not_recoverable') {
    return errorObject('not_recoverable', {
      reason: `${reason}; n > 1, best_of, suffix, echo, logprobs and audio can't be joined`,
    }).message;
  }
  const words = GAVE_UP[why] ?? `after ${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}`;
  return errorObject('stream_interrupted', { reason: `${reason}; gave up ${words} (${why})` }).message;
}

/** Reasons without an entry report only the number of attempts. */
const GAVE_UP: Readonly<Partial<Record<GiveUp, string>>> = {
  permanent: "because another attempt can't help",
  plan_not_allowed: 'because recovery.plans forbids the plan that fits',
  no_way_left: 'because no way is left to ask for the rest',
  context_full: "because the rest doesn't fit into the context",
  no_progress: 'because nothing new came for recovery.no_progress_ms',
  repeated_failure: 'because the attempts kept failing at the same character',
  work: 'because the attempts generated too many tokens',
  deadline: 'because the deadline has passed',
  retry_after: 'because the provider asked for a longer wait than recovery.retry_after_max_s',
};

/** Names of the tools that the error concerns. */
function namesOf(tools: readonly ProviderTool[], why: GiveUp): string {
  const meant = why === 'tool_running' ? tools.filter(({ state }) => state === 'running') : tools;
  return [...new Set(meant.map(({ name }) => `'${name}'`))].join(', ');
}

function reasonOf({ cause, evidence, status, message }: Interruption): string {
  const detail = status ?? ('code' in evidence ? evidence.code : evidence.kind);
  const reason = `${CAUSES[cause]} (${cause}, ${detail})`;
  return message ? `${reason}: ${message}` : reason;
}

const CAUSES: Readonly<Record<Cause, string>> = {
  connection_reset: 'the connection broke',
  idle_stall: 'the answer stalled',
  goaway: 'the provider closed the connection',
  provider_5xx: 'the provider failed',
  rate_limited: 'the provider limits the rate of requests',
  context_overflow: 'the request is too long for the model',
  invalid_request: 'the provider refused the request',
  unauthorised: 'the provider refused the key',
  model_not_found: "the provider doesn't know the model",
  content_filter: 'a content filter stopped the answer',
  quota: 'the quota is spent',
};

/** The `holdfast` object of the final error: everything a client needs to save the partial answer. */
function failureDetails(failed: FailedRun, partial: PartialAnswer): object {
  const { run, created_at_ms, stream_id, attempts, cause, retryable, retry_after_ms, message } = failed;
  const said = partial.text || partial.refusal;
  const text = tailOf(said, PART_CHARACTERS_MAX);
  return {
    run_id: run,
    root_request_id: run,
    stream_id: stream_id ?? null,
    created_at: created_at_ms === undefined ? null : Math.floor(created_at_ms / 1000),
    cause,
    ...(attempts !== undefined && { attempts }),
    retryable,
    ...(retry_after_ms !== undefined && { retry_after_ms: Math.ceil(retry_after_ms) }),
    terminal_message: message,
    partial: true,
    partial_chars: partial.text.length + partial.refusal.length,
    partial_text: text,
    partial_text_truncated: said.length > PART_CHARACTERS_MAX,
    parts: partsOf(partial, PART_CHARACTERS_MAX),
    tool_calls: partial.calls.map(({ id, name, arguments: json }) => ({ id, name, arguments: json })),
  };
}
