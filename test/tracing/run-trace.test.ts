import { SpanStatusCode } from '@opentelemetry/api';
import {
  InMemorySpanExporter,
  ParentBasedSampler,
  SimpleSpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { expect, test } from 'vitest';
import type { UpstreamConfiguration } from '../../src/config/configuration.ts';
import type { ObservedAttempt, ObservedRun } from '../../src/proxy/run/context/run-observer.ts';
import { providerName } from '../../src/tracing/attributes.ts';
import { RunTrace } from '../../src/tracing/run-trace.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const RUN: ObservedRun = {
  run: 'run_1',
  wire: 'completions',
  model: 'a-model',
  upstream: 'main',
  streamed: true,
  resumable: false,
  created_at_ms: 0,
  answer: { characters: 0, tool_calls: 0, text: '' },
};
const ATTEMPT: ObservedAttempt = { attempt: 1, upstream: 'main', mode: 'first', asked_model: 'its-model' };
const UPSTREAMS = { main: { base_url: 'https://api.mistral.ai/v1/account-4711' } };

function traced(run: Partial<ObservedRun> = {}, ratio = 1) {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
    spanProcessors: [new SimpleSpanProcessor({ exporter })],
  });
  const watch = new RunTrace(provider.getTracer('test'), UPSTREAMS, { ...RUN, ...run });
  return { watch, spans: () => exporter.getFinishedSpans() };
}

test('a run without a trace begins one', () => {
  const { watch, spans } = traced();
  const sent = watch.attempt(ATTEMPT);
  watch.attemptEnded({ outcome: 'complete', added: 1 });
  watch.ended({ outcome: 'complete' });
  const [attempt, run] = spans();
  const { traceId, spanId } = run?.spanContext() ?? {};
  expect(run?.parentSpanContext).toBeUndefined();
  expect(watch.logFields).toEqual({ trace_id: traceId, span_id: spanId });
  expect(attempt?.parentSpanContext?.spanId).toBe(spanId);
  expect(sent).toEqual({ traceparent: `00-${traceId}-${attempt?.spanContext().spanId}-01` });
});

test('what belongs to a trace that cannot be read is not passed on', () => {
  const { watch } = traced({ traceparent: 'nonsense', tracestate: 'vendor=opaque' });
  expect(watch.attempt(ATTEMPT)).toMatchObject({ tracestate: '' });
  const { watch: clean } = traced({ traceparent: 'nonsense' });
  expect(clean.attempt(ATTEMPT)).not.toHaveProperty('tracestate');
});

test.each([
  { ratio: 0, traceparent: undefined, flags: '00' },
  { ratio: 0, traceparent: `00-${TRACE}-b7ad6b7169203331-01`, flags: '01' },
  { ratio: 1, traceparent: `00-${TRACE}-b7ad6b7169203331-00`, flags: '00' },
])('of %o the rest of the way is traced', ({ ratio, traceparent, flags }) => {
  const { watch, spans } = traced(traceparent === undefined ? {} : { traceparent }, ratio);
  expect(watch.attempt(ATTEMPT).traceparent).toMatch(
    new RegExp(`^00-${traceparent ? TRACE : '[\\da-f]{32}'}-[\\da-f]{16}-${flags}$`),
  );
  watch.answering();
  watch.attemptEnded({ outcome: 'complete', added: 1, seam: 'exact' });
  watch.ended({ outcome: 'complete' });
  expect(spans()).toHaveLength(flags === '01' ? 2 : 0);
});

test('a refusal is an error, with the status of the provider', () => {
  const { watch, spans } = traced();
  watch.attempt(ATTEMPT);
  watch.attemptEnded({
    outcome: 'interrupted',
    added: 0,
    interruption: {
      cause: 'rate_limited',
      phase: 'connect',
      evidence: { kind: 'status', status: 429 },
      status: 429,
      retry_after_ms: 1500,
    },
  });
  watch.planned({ plan: 'give_up', why: 'permanent', wait_ms: 0 });
  watch.ended({ outcome: 'rejected' });
  const [attempt, run] = spans();
  for (const span of [attempt, run]) {
    expect(span?.status.code).toBe(SpanStatusCode.ERROR);
    expect(span?.attributes['error.type']).toBe('rate_limited');
  }
  expect(attempt?.attributes['http.response.status_code']).toBe(429);
  expect(run?.events).toMatchObject([
    {
      name: 'holdfast.interruption',
      attributes: {
        'holdfast.evidence': 'status',
        'holdfast.evidence.details': '429',
        'holdfast.retry_after_ms': 1500,
        'http.response.status_code': 429,
      },
    },
    { name: 'holdfast.plan', attributes: { 'holdfast.give_up': 'permanent' } },
  ]);
});

test.each(['cancelled', 'handed_over', 'superseded'] as const)(
  '%s: an attempt that is under way is let go',
  (outcome) => {
    const { watch, spans } = traced();
    watch.attempt(ATTEMPT);
    watch.ended({ outcome });
    const [attempt, run] = spans();
    expect(attempt?.attributes['holdfast.outcome']).toBe('abandoned');
    expect(run?.attributes['holdfast.outcome']).toBe(outcome);
    for (const span of [attempt, run]) expect(span?.status.code).toBe(SpanStatusCode.UNSET);
  },
);

test('a run that failed by a mistake of ours has no cause', () => {
  const { watch, spans } = traced();
  watch.ended({ outcome: 'failed' });
  expect(spans()[0]).toMatchObject({
    status: { code: SpanStatusCode.ERROR },
    attributes: { 'error.type': '_OTHER', 'holdfast.attempts': 0 },
  });
});

test('the span names the upstream and the model, and not the account', () => {
  const { watch, spans } = traced();
  watch.attempt(ATTEMPT);
  watch.ended({ outcome: 'cancelled' });
  const [attempt] = spans();
  expect(attempt?.name).toBe('text_completion its-model');
  expect(attempt?.attributes).toMatchObject({
    'gen_ai.operation.name': 'text_completion',
    'gen_ai.provider.name': 'mistral_ai',
    'server.address': 'api.mistral.ai',
    'server.port': 443,
  });
  expect(JSON.stringify(attempt?.attributes)).not.toContain('4711');
});

test.each<[UpstreamConfiguration, string]>([
  [{ base_url: 'https://api.openai.com/v1' }, 'openai'],
  [{ base_url: 'https://api.x.ai/v1' }, 'x_ai'],
  [{ base_url: 'http://10.0.0.1/v1', dialect: 'vllm' }, 'vllm'],
  [{ base_url: 'http://10.0.0.1/v1', dialect: 'bedrock' }, 'aws.bedrock'],
  [{ base_url: 'http://10.0.0.1/v1', dialect: 'generic' }, 'main'],
  [{ base_url: 'http://10.0.0.1/v1' }, 'main'],
])('%o is of %s', (upstream, name) => {
  expect(providerName('main', upstream)).toBe(name);
});

test('both spans name the conversation, where the request does', () => {
  const { watch, spans } = traced({ conversation: 'conv_1' });
  watch.attempt(ATTEMPT);
  watch.attemptEnded({ outcome: 'complete', added: 1 });
  watch.ended({ outcome: 'complete' });
  const named = (all: ReturnType<typeof spans>) =>
    all.map(({ attributes }) => attributes['gen_ai.conversation.id']);
  expect(named(spans())).toEqual(['conv_1', 'conv_1']);

  const other = traced();
  other.watch.ended({ outcome: 'complete' });
  expect(named(other.spans())).toEqual([undefined]);
});
