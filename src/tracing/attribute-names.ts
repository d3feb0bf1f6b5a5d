/**
 * The names of OpenTelemetry's conventions for generative AI, which are still in development, and of ours.
 * `docs/tracing.md` says what each of them means.
 */
export const ATTRIBUTE = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  requestStream: 'gen_ai.request.stream',
  responseId: 'gen_ai.response.id',
  finishReasons: 'gen_ai.response.finish_reasons',
  timeToFirstChunk: 'gen_ai.response.time_to_first_chunk',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  serverAddress: 'server.address',
  serverPort: 'server.port',
  errorType: 'error.type',
  status: 'http.response.status_code',

  run: 'holdfast.run.id',
  wire: 'holdfast.wire',
  outcome: 'holdfast.outcome',
  attempts: 'holdfast.attempts',
  resumable: 'holdfast.resumable',
  epoch: 'holdfast.takeover.epoch',
  afterEvent: 'holdfast.takeover.after_event',
  attempt: 'holdfast.attempt',
  upstream: 'holdfast.upstream',
  mode: 'holdfast.mode',
  plan: 'holdfast.plan',
  why: 'holdfast.give_up',
  wait_ms: 'holdfast.wait_ms',
  gap_ms: 'holdfast.gap_ms',
  cause: 'holdfast.cause',
  phase: 'holdfast.phase',
  evidence: 'holdfast.evidence',
  evidenceDetails: 'holdfast.evidence.details',
  retryAfter_ms: 'holdfast.retry_after_ms',
  added: 'holdfast.characters_added',
  seam: 'holdfast.seam',
} as const;

export const EVENT = {
  firstContent: 'holdfast.first_content',
  interruption: 'holdfast.interruption',
  plan: 'holdfast.plan',
  seam: 'holdfast.seam',
  recovered: 'holdfast.recovered',
} as const;
