import { chunk, DONE, type Envelope, event } from './events.ts';
import type { BadFinish, ErrorEvent } from './fault.ts';

const MESSAGE = 'The server had an error while processing your request. Sorry about that!';

/** The events with which a provider reports the failure; the body ends after them. */
export function errorEvents(
  kind: ErrorEvent,
  envelope: Envelope,
  retry_after_s: number | undefined,
): readonly string[] {
  switch (kind) {
    case 'error_own':
      throw new Error('only a script with an accent has an error of its own');
    case 'error_openai':
      return [event({ error: { message: MESSAGE, type: 'server_error', param: null, code: null } })];
    case 'error_openrouter': {
      const error = { code: 502, message: 'Provider disconnected unexpectedly' };
      return [event(chunk(envelope, { content: '' }, 'error', { provider: 'openai', error }))];
    }
    case 'error_vllm': {
      const error = { message: 'Internal server error', type: 'InternalServerError', param: null, code: 500 };
      return [event({ error }), DONE];
    }
    case 'error_tgi': {
      const message = 'Request failed during generation: Server error: CUDA out of memory';
      return [event({ error: { message, http_status_code: 422 } }), DONE];
    }
    case 'error_ollama': {
      const empty = { ...envelope, id: '', model: '' };
      const fingerprint = { system_fingerprint: 'fp_ollama' };
      return [event(chunk(empty, { role: 'assistant', content: '' }, null, fingerprint))];
    }
    case 'error_gemini': {
      const message = 'The model is overloaded. Please try again later.';
      return [`${JSON.stringify({ error: { code: 503, message, status: 'UNAVAILABLE' } }, null, 2)}\n`];
    }
    case 'error_anthropic': {
      const error = { details: null, type: 'overloaded_error', message: 'Overloaded' };
      return [`event: error\n${event({ type: 'error', error, request_id: `req_${envelope.id}` })}`];
    }
    case 'error_string':
      return [event({ error: 'The service is currently unavailable' })];
    case 'error_rate_limited':
      return [event({ error: rateLimited(retry_after_s) })];
    case 'error_quota': {
      const message = 'You exceeded your current quota, please check your plan and billing details.';
      const code = 'insufficient_quota';
      return [event({ error: { message, type: code, param: null, code } })];
    }
  }
}

function rateLimited(retry_after_s: number | undefined): object {
  const limit = 'Rate limit reached for requests per minute.';
  const hint = retry_after_s === undefined ? '' : ` Please try again in ${retry_after_s}s.`;
  return {
    message: `${limit}${hint}`,
    type: 'rate_limit_error',
    param: null,
    code: 'rate_limit_exceeded',
    ...(retry_after_s === undefined ? {} : { retry_after: retry_after_s }),
  };
}

export function badFinishEvents(kind: BadFinish, envelope: Envelope): string[] {
  const reason = kind.slice('finish_'.length);
  return [event(chunk(envelope, { content: '' }, reason)), DONE];
}

/** An event whose JSON is cut off, but which ends properly as an event. */
export const malformedEvent = (envelope: Envelope): string =>
  `data: ${JSON.stringify(chunk(envelope, { content: 'lost' }, null)).slice(0, -9)}\n\n`;
