import type { JournalFold } from '../checkpoint/journal-fold.ts';
import type { RunId } from '../checkpoint/store.ts';
import { type ErrorCode, type ErrorObject, errorObject, errorStatus } from '../errors.ts';
import { type Interruption, isPermanent } from '../interrupts/interruption.ts';
import type { GiveUp } from '../plans/decide.ts';
import type { Transcript } from '../plans/transcript.ts';
import { failureDetails } from './failure-details.ts';
import { PERMANENT_STATUS } from './failure-status.ts';
import type { Run } from './run.ts';
import { wireIn } from './wires/registry.ts';

export interface Failure {
  readonly interruption: Interruption;
  readonly why: GiveUp;
  /** Upstream requests made for the run. */
  readonly attempts: number;
  readonly created_at_ms: number;
  /** The `id` of the chunks that the client was sent, if it was sent any. */
  readonly stream_id: string | undefined;
}

export interface StoredFailure {
  readonly error: ErrorObject;
  readonly cause: string;
  readonly retryable: boolean;
}

/** The error event that ends a stream which could not be finished. */
export function failureEvent(
  { id }: Run,
  { reasoning, text, refusal, closedCalls }: Transcript,
  { interruption, why, attempts, created_at_ms, stream_id }: Failure,
): object {
  const { cause } = interruption;
  const message = messageOf(interruption, why);
  const retryable = !isPermanent(cause) && why !== 'poisoned';
  return {
    message,
    type: 'stream_interrupted',
    param: null,
    code: codeOf(interruption, why),
    holdfast: failureDetails(
      { run: id, created_at_ms, stream_id, attempts, cause, retryable, message },
      { reasoning, text, refusal, calls: closedCalls },
    ),
  };
}

/** The error event of a run that is told from the store: `cause` says what ended it. */
export function storedFailureEvent(
  run: RunId,
  { header, events, reasoning, text, refusal, tool_calls }: JournalFold,
  { error, cause, retryable }: StoredFailure,
): object {
  const calls = tool_calls.filter(({ closed }) => closed !== undefined);
  const { message } = error;
  const created_at_ms = header?.created_at_ms;
  const first = events.find(({ payload }) => payload !== undefined)?.payload;
  const stream_id = first === undefined ? undefined : wireIn(header).delivered.idOf(first);
  return {
    ...error,
    holdfast: failureDetails(
      { run, created_at_ms, stream_id, cause, retryable, message },
      { reasoning, text, refusal, calls },
    ),
  };
}

/** The same as a response, where none was opened yet. */
export function failureResponse(
  { target: { name: upstream } }: Pick<Run, 'target'>,
  { interruption }: Pick<Failure, 'interruption'>,
): { status: number; body: string } {
  const { cause, evidence, message } = interruption;
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

const response = (code: ErrorCode, error: ErrorObject) => ({
  status: errorStatus(code),
  body: JSON.stringify({ error }),
});

function codeOf({ evidence }: Interruption, why: GiveUp): ErrorCode {
  if (why === 'poisoned') return 'run_poisoned';
  if (why === 'request_unknown') return 'not_resumable';
  if (evidence.kind === 'limit') return 'run_too_large';
  return why === 'not_recoverable' ? 'not_recoverable' : 'stream_interrupted';
}

function messageOf(interruption: Interruption, why: GiveUp): string {
  if (why === 'poisoned') return errorObject('run_poisoned').message;
  if (why === 'request_unknown') return errorObject('not_resumable').message;
  const reason = reasonOf(interruption);
  if (why === 'not_recoverable') {
    return errorObject('not_recoverable', {
      reason: `${reason}; n > 1, best_of, suffix, echo, logprobs and audio cannot be joined`,
    }).message;
  }
  return errorObject('stream_interrupted', { reason: `${reason}; gave up: ${why}` }).message;
}

function reasonOf({ cause, evidence, status, message }: Interruption): string {
  const detail = status ?? ('code' in evidence ? evidence.code : evidence.kind);
  return message ? `${cause} (${detail}): ${message}` : `${cause} (${detail})`;
}
