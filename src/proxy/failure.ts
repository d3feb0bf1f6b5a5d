import { type ErrorCode, type ErrorObject, errorObject, errorStatus } from '../errors.ts';
import { type Cause, type Interruption, isPermanent } from '../interrupts/interruption.ts';
import type { GiveUp } from '../plans/decide.ts';
import type { Transcript } from '../plans/transcript.ts';
import type { Run } from './run.ts';

export interface Failure {
  readonly interruption: Interruption;
  readonly why: GiveUp;
  readonly attempts: number;
}

/** The error event that ends a stream which could not be finished. */
export function failureEvent(
  run: Run,
  transcript: Transcript,
  { interruption, why, attempts }: Failure,
): object {
  const { cause } = interruption;
  const delivered = transcript.text.length + transcript.refusal.length;
  return {
    message: messageOf(interruption, why),
    type: 'stream_interrupted',
    param: null,
    code: codeOf(interruption, why),
    holdfast: {
      run_id: run.id,
      root_request_id: run.id,
      cause,
      attempts,
      retryable: !isPermanent(cause),
      partial: true,
      partial_chars: delivered,
      tool_calls: transcript.closedCalls.map(({ id, name }) => ({ id, name })),
    },
  };
}

/** The same as a response, where none was opened yet. */
export function failureResponse(run: Run, { interruption }: Failure): { status: number; body: string } {
  const upstream = run.target.name;
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

/** In-band errors name no status; these are what the provider would have answered with in time. */
const PERMANENT_STATUS: Partial<Record<Cause, number>> = {
  context_overflow: 400,
  invalid_request: 400,
  unauthorised: 401,
  model_not_found: 404,
  content_filter: 400,
  quota: 429,
};

function codeOf({ evidence }: Interruption, why: GiveUp): ErrorCode {
  if (evidence.kind === 'limit') return 'run_too_large';
  return why === 'not_recoverable' ? 'not_recoverable' : 'stream_interrupted';
}

function messageOf(interruption: Interruption, why: GiveUp): string {
  const reason = reasonOf(interruption);
  if (why === 'not_recoverable') {
    return errorObject('not_recoverable', { reason: `${reason}; n > 1, logprobs and audio cannot be joined` })
      .message;
  }
  return errorObject('stream_interrupted', { reason: `${reason}; gave up: ${why}` }).message;
}

function reasonOf({ cause, evidence, status, message }: Interruption): string {
  const detail = status ?? ('code' in evidence ? evidence.code : evidence.kind);
  return message ? `${cause} (${detail}): ${message}` : `${cause} (${detail})`;
}
