import { expect } from 'vitest';
import type { Cause, Evidence } from '../../src/interrupts/interruption.ts';
import type { Fault, Position } from '../provider/fault.ts';
import type { Upstream } from './deployment.ts';

/** How Holdfast must classify the fault if it strikes in the middle of the text. */
export interface Classified {
  readonly cause: Cause;
  readonly evidence: Evidence;
  readonly status?: number;
  /** `text` by default. */
  readonly phase?: 'connect' | 'eof';
}

/** Something that goes wrong while a provider answers. */
export interface Trouble {
  readonly name: string;
  readonly upstream: Upstream;
  readonly fault: (at: Position) => Fault;
  /** Absent if the fault isn't an interruption, since the answer is still whole. */
  readonly classified?: Classified;
}

const reset = (code: string): Classified => ({
  cause: 'connection_reset',
  evidence: { kind: 'transport', code },
});
const eof = (done: boolean): Classified => ({
  cause: 'connection_reset',
  phase: 'eof',
  evidence: { kind: 'clean_eof', done },
});
const goaway = (code: number): Classified => ({ cause: 'goaway', evidence: { kind: 'goaway', code } });
const stalled = (clock: 'idle' | 'progress'): Classified => ({
  cause: 'idle_stall',
  evidence: { kind: 'clock', clock },
});
const errorEvent = (type: string, status?: number): Classified => ({
  cause: 'provider_5xx',
  evidence: { kind: 'error_event', type },
  ...(status !== undefined && { status }),
});
const badFinish = (reason: string, status: number): Classified => ({
  cause: 'provider_5xx',
  evidence: { kind: 'finish_reason', reason },
  status,
});
const notAStream = (content_type: string, status: number): Classified => ({
  cause: 'provider_5xx',
  phase: 'connect',
  evidence: { kind: 'not_a_stream', content_type },
  status,
});

const every_ms = 50;

/** Every way in which a recoverable answer goes wrong. */
export const TROUBLES: readonly Trouble[] = [
  {
    name: 'reset',
    upstream: 'h1',
    fault: (at) => ({ kind: 'reset', at }),
    classified: reset('ECONNRESET'),
  },
  {
    name: 'reset over HTTP/2',
    upstream: 'h2',
    fault: (at) => ({ kind: 'reset', at }),
    // If a write is the first to hit the reset, the error stays with the write, and reading simply ends.
    classified: reset(expect.stringMatching(/^(ECONNRESET|UND_ERR_SOCKET)$/) as string),
  },
  {
    name: 'fin_in_chunk',
    upstream: 'h1',
    fault: (at) => ({ kind: 'fin_in_chunk', at }),
    classified: reset('UND_ERR_SOCKET'),
  },
  {
    name: 'tls_cut',
    upstream: 'h2',
    fault: (at) => ({ kind: 'tls_cut', at }),
    classified: reset('UND_ERR_SOCKET'),
  },
  {
    name: 'h2_rst',
    upstream: 'h2',
    fault: (at) => ({ kind: 'h2_rst', at }),
    classified: reset('ERR_HTTP2_STREAM_ERROR'),
  },
  { name: 'clean_eof', upstream: 'h1', fault: (at) => ({ kind: 'clean_eof', at }), classified: eof(false) },
  {
    name: 'clean_eof over HTTP/2',
    upstream: 'h2',
    fault: (at) => ({ kind: 'clean_eof', at }),
    classified: eof(false),
  },
  {
    name: 'done_without_finish',
    upstream: 'h1',
    fault: (at) => ({ kind: 'done_without_finish', at }),
    classified: eof(true),
  },
  {
    name: 'goaway_0_close',
    upstream: 'h2',
    fault: (at) => ({ kind: 'goaway_0_close', at }),
    classified: goaway(0),
  },
  {
    name: 'goaway_error',
    upstream: 'h2',
    fault: (at) => ({ kind: 'goaway_error', at }),
    classified: goaway(2),
  },
  {
    name: 'silence',
    upstream: 'impatient',
    fault: (at) => ({ kind: 'silence', at }),
    classified: stalled('idle'),
  },
  {
    name: 'comments',
    upstream: 'impatient',
    fault: (at) => ({ kind: 'comments', at, every_ms }),
    classified: stalled('progress'),
  },
  {
    name: 'pings',
    upstream: 'impatient',
    fault: (at) => ({ kind: 'pings', at, every_ms }),
    classified: stalled('progress'),
  },
  {
    name: 'ping events',
    upstream: 'impatient',
    fault: (at) => ({ kind: 'pings', at, every_ms, shape: 'event' }),
    classified: stalled('progress'),
  },
  {
    name: 'error_openai',
    upstream: 'h1',
    fault: (at) => ({ kind: 'error_openai', at }),
    classified: errorEvent('server_error', 500),
  },
  {
    name: 'error_openrouter',
    upstream: 'h1',
    fault: (at) => ({ kind: 'error_openrouter', at }),
    classified: errorEvent('502', 502),
  },
  {
    name: 'error_vllm',
    upstream: 'h1',
    fault: (at) => ({ kind: 'error_vllm', at }),
    classified: errorEvent('internalservererror', 500),
  },
  {
    // The status is 422, but a request that was already half answered can't be at fault.
    name: 'error_tgi',
    upstream: 'h1',
    fault: (at) => ({ kind: 'error_tgi', at }),
    classified: errorEvent('', 422),
  },
  {
    // The error itself gets lost: the client sees an empty chunk, then the end.
    name: 'error_ollama',
    upstream: 'h1',
    fault: (at) => ({ kind: 'error_ollama', at }),
    classified: eof(false),
  },
  {
    name: 'error_gemini',
    upstream: 'h1',
    fault: (at) => ({ kind: 'error_gemini', at }),
    classified: errorEvent('503', 503),
  },
  {
    name: 'error_anthropic',
    upstream: 'h1',
    fault: (at) => ({ kind: 'error_anthropic', at }),
    classified: errorEvent('overloaded_error', 529),
  },
  {
    name: 'error_string',
    upstream: 'h1',
    fault: (at) => ({ kind: 'error_string', at }),
    classified: errorEvent(''),
  },
  {
    name: 'error_rate_limited',
    upstream: 'h1',
    fault: (at) => ({ kind: 'error_rate_limited', at }),
    classified: {
      cause: 'rate_limited',
      evidence: { kind: 'error_event', type: 'rate_limit_error' },
      status: 429,
    },
  },
  {
    name: 'finish_insufficient_system_resource',
    upstream: 'h1',
    fault: (at) => ({ kind: 'finish_insufficient_system_resource', at }),
    classified: badFinish('insufficient_system_resource', 503),
  },
  {
    name: 'finish_abort',
    upstream: 'h1',
    fault: (at) => ({ kind: 'finish_abort', at }),
    classified: badFinish('abort', 502),
  },
  {
    name: 'finish_overloaded_error',
    upstream: 'h1',
    fault: (at) => ({ kind: 'finish_overloaded_error', at }),
    classified: badFinish('overloaded_error', 529),
  },
  {
    name: 'status 503',
    upstream: 'h1',
    fault: () => ({ kind: 'status', status: 503 }),
    classified: {
      cause: 'provider_5xx',
      phase: 'connect',
      evidence: { kind: 'status', status: 503 },
      status: 503,
    },
  },
  {
    name: 'json_200',
    upstream: 'h1',
    fault: () => ({ kind: 'json_200' }),
    classified: notAStream('application/json', 503),
  },
  {
    name: 'html_200',
    upstream: 'h1',
    fault: () => ({ kind: 'html_200' }),
    classified: notAStream('text/html; charset=utf-8', 502),
  },
  {
    name: 'malformed_event',
    upstream: 'h1',
    fault: (at) => ({ kind: 'malformed_event', at }),
    classified: { cause: 'provider_5xx', evidence: { kind: 'malformed_event' }, status: 502 },
  },
  { name: 'goaway_graceful', upstream: 'h2', fault: (at) => ({ kind: 'goaway_graceful', at }) },
  {
    name: 'reset after the finish reason',
    upstream: 'h1',
    fault: () => ({ kind: 'reset', at: { after_finish: true } }),
  },
  {
    name: 'reset after the finish reason, over HTTP/2',
    upstream: 'h2',
    fault: () => ({ kind: 'reset', at: { after_finish: true } }),
  },
];
