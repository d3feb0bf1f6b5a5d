import { expect, it } from 'vitest';
import type { RunId } from '../../../src/checkpoint/store.ts';
import { completeConfiguration } from '../../../src/config/load.ts';
import type { Time } from '../../../src/lib/time.ts';
import { GenAiMetrics } from '../../../src/metrics/gen-ai/gen-ai-metrics.ts';
import { Metrics } from '../../../src/metrics/metrics.ts';
import { ChunkGaps } from '../../../src/proxy/run/context/chunk-gaps.ts';
import type {
  ObservedAttemptEnd,
  ObservedEnd,
  ObservedRun,
} from '../../../src/proxy/run/context/run-observer.ts';

const CONFIGURATION = completeConfiguration({
  upstreams: {
    main: { base_url: 'https://api.openai.com/v1' },
    cloud: { base_url: 'https://llm.example.com/v1', dialect: 'azure' },
    cellar: { base_url: 'http://10.0.0.1:8000/v1' },
  },
  routes: [
    { model: 'gpt-*', targets: [{ upstream: 'main' }, { upstream: 'cellar', model: 'kelp-70b' }] },
    { model: 'exact', targets: [{ upstream: 'cloud' }] },
  ],
});
const USAGE = { prompt_tokens: 30, completion_tokens: 5, total_tokens: 35 };
const CUT: ObservedAttemptEnd = {
  outcome: 'interrupted',
  added: 7,
  interruption: {
    cause: 'connection_reset',
    phase: 'text',
    evidence: { kind: 'transport', code: 'ECONNRESET' },
  },
};

/** Observes runs with a clock that the test advances. */
class Observed {
  readonly metrics = new Metrics();
  readonly #observer: GenAiMetrics;
  #now_ms = 1000;

  constructor() {
    const time: Time = { now: () => this.#now_ms, wall: () => 0, after: () => () => {} };
    this.#observer = new GenAiMetrics(this.metrics.families, CONFIGURATION, time);
    this.metrics.begin({});
  }

  begin(more: Partial<ObservedRun> = {}) {
    return this.#observer.begin({
      run: 'run_kelp' as RunId,
      wire: 'chat_completions',
      model: 'gpt-9',
      upstream: 'main',
      streamed: true,
      resumable: false,
      created_at_ms: 0,
      answer: { characters: 0, tool_calls: 0, text: '' },
      ...more,
    });
  }

  pass(seconds: number): void {
    this.#now_ms += seconds * 1000;
  }

  /** Sums and counts, by series. */
  async series(): Promise<Record<string, number>> {
    const { body } = await this.metrics.exposition(undefined);
    const lines = body.split('\n').filter((line) => /^gen_ai_\w+(_sum|_count|_total)(\{| )/.test(line));
    return Object.fromEntries(
      lines.map((line) => [
        line.slice(0, line.lastIndexOf(' ')),
        Number(line.slice(line.lastIndexOf(' ') + 1)),
      ]),
    );
  }
}

const attempt = (upstream: string, asked_model: string) =>
  ({ attempt: 1, upstream, asked_model, mode: 'first' }) as const;

const labels = (provider: string, model: string, operation = 'chat') =>
  `gen_ai_operation_name="${operation}",gen_ai_provider_name="${provider}",gen_ai_request_model="${model}"`;

it('an attempt is an operation of a client, and a run a request to a server', async () => {
  const observed = new Observed();
  const run = observed.begin();
  run.attempt(attempt('main', 'gpt-9'));
  observed.pass(2);
  run.answering();
  observed.pass(1);
  run.attemptEnded(CUT);
  observed.pass(1);
  run.attempt({ ...attempt('cellar', 'kelp-70b'), attempt: 2, mode: 'nudge', plan: 'R1' });
  observed.pass(4);
  run.answering();
  run.attemptEnded({ outcome: 'complete', added: 9, usage: USAGE });
  run.ended({ outcome: 'recovered' });

  const openai = `${labels('openai', 'gpt-*')},server_address="api.openai.com",server_port="443"`;
  const cellar = `${labels('cellar', 'kelp-70b')},server_address="10.0.0.1",server_port="8000"`;
  const server = labels('cellar', 'gpt-*');
  expect(await observed.series()).toEqual({
    [`gen_ai_client_operation_duration_seconds_sum{${openai},error_type="connection_reset"}`]: 3,
    [`gen_ai_client_operation_duration_seconds_count{${openai},error_type="connection_reset"}`]: 1,
    [`gen_ai_client_operation_duration_seconds_sum{${cellar}}`]: 4,
    [`gen_ai_client_operation_duration_seconds_count{${cellar}}`]: 1,
    [`gen_ai_client_operation_time_to_first_chunk_seconds_sum{${openai}}`]: 2,
    [`gen_ai_client_operation_time_to_first_chunk_seconds_count{${openai}}`]: 1,
    [`gen_ai_client_operation_time_to_first_chunk_seconds_sum{${cellar}}`]: 4,
    [`gen_ai_client_operation_time_to_first_chunk_seconds_count{${cellar}}`]: 1,
    [`gen_ai_client_token_usage_sum{${cellar},gen_ai_token_type="input"}`]: 30,
    [`gen_ai_client_token_usage_count{${cellar},gen_ai_token_type="input"}`]: 1,
    [`gen_ai_client_token_usage_sum{${cellar},gen_ai_token_type="output"}`]: 5,
    [`gen_ai_client_token_usage_count{${cellar},gen_ai_token_type="output"}`]: 1,
    [`gen_ai_client_inference_usage_input_tokens_total{${cellar},gen_ai_token_modality="unknown"}`]: 30,
    [`gen_ai_client_inference_usage_output_tokens_total{${cellar},gen_ai_token_modality="unknown"}`]: 5,
    [`gen_ai_server_request_duration_seconds_sum{${server}}`]: 8,
    [`gen_ai_server_request_duration_seconds_count{${server}}`]: 1,
    [`gen_ai_server_time_to_first_token_seconds_sum{${labels('openai', 'gpt-*')}}`]: 2,
    [`gen_ai_server_time_to_first_token_seconds_count{${labels('openai', 'gpt-*')}}`]: 1,
  });
});

const requests = (series: Record<string, number>) =>
  Object.keys(series).filter((name) => name.startsWith('gen_ai_server_request_duration_seconds_count'));

it.each<[ObservedEnd['outcome'], string | undefined]>([
  ['failed', 'connection_reset'],
  ['rejected', 'connection_reset'],
  ['cancelled', 'cancelled'],
])('a run that is %s has the error type %s', async (outcome, error_type) => {
  const observed = new Observed();
  const run = observed.begin({ wire: 'completions', model: 'exact', upstream: 'cloud' });
  run.attempt(attempt('cloud', 'exact'));
  if (outcome !== 'cancelled') run.attemptEnded(CUT);
  run.ended({ outcome });
  const series = await observed.series();
  const whose = labels('azure.ai.openai', 'exact', 'text_completion');
  expect(requests(series)).toEqual([
    `gen_ai_server_request_duration_seconds_count{${whose},error_type="${error_type}"}`,
  ]);
  const server = 'server_address="llm.example.com",server_port="443"';
  expect(
    series[`gen_ai_client_operation_duration_seconds_count{${whose},${server},error_type="${error_type}"}`],
  ).toBe(1);
});

it.each<ObservedEnd['outcome']>(['superseded', 'handed_over', 'replayed'])(
  'a run that is %s is measured where it ends, or has been',
  async (outcome) => {
    const observed = new Observed();
    observed.begin().ended({ outcome });
    expect(await observed.series()).toEqual({});
  },
);

it('the first token of a run that is taken over was counted elsewhere, unless there was none', async () => {
  const observed = new Observed();
  for (const after_event of [0, 12]) {
    const run = observed.begin({ taken_over: { epoch: 2, after_event } });
    run.attemptEnded(CUT);
    run.attempt(attempt('main', 'gpt-9'));
    run.answering();
  }
  const series = await observed.series();
  expect(series[`gen_ai_server_time_to_first_token_seconds_count{${labels('openai', 'gpt-*')}}`]).toBe(1);
});

it('what came between the chunks of an attempt is counted for each chunk after the first', async () => {
  const observed = new Observed();
  for (const came_at_ms of [[0, 10, 50], [100], [0, 100_000]]) {
    const chunk_gaps = new ChunkGaps();
    for (const at_ms of came_at_ms) chunk_gaps.came(at_ms);
    const run = observed.begin();
    run.attempt(attempt('main', 'gpt-9'));
    run.attemptEnded({ outcome: 'complete', added: 9, chunk_gaps });
  }
  const name = 'gen_ai_client_operation_time_per_output_chunk_seconds';
  const whose = `${labels('openai', 'gpt-*')},server_address="api.openai.com",server_port="443"`;
  expect(await observed.series()).toMatchObject({
    [`${name}_sum{${whose}}`]: 100.05,
    [`${name}_count{${whose}}`]: 3,
  });
  for (const accept of [undefined, 'application/openmetrics-text; version=1.0.0']) {
    const { body } = await observed.metrics.exposition(accept);
    expect(body).toContain(`# TYPE ${name} histogram\n`);
    const counts = body.matchAll(new RegExp(`^${name}_bucket\\{le="([^"]+)",.*\\} (\\d+)$`, 'gm'));
    expect([...counts].map(([, le, count]) => `${le}: ${count}`)).toEqual([
      ...['0.01: 1', '0.02: 1', '0.04: 2', '0.08: 2', '0.16: 2', '0.32: 2', '0.64: 2', '1.28: 2'],
      ...['2.56: 2', '5.12: 2', '10.24: 2', '20.48: 2', '40.96: 2', '81.92: 2', '+Inf: 3'],
    ]);
  }
});

it('models that no route names are all one, whatever their clients call them', async () => {
  const observed = new Observed();
  for (const model of ['gpt-', 'gpt-"\n', 'gpt', 'kelp-70b', '', '🌊'.repeat(9999)]) {
    const run = observed.begin({ model });
    run.attempt(attempt('main', model));
    run.attemptEnded({ outcome: 'complete', added: 1, usage: USAGE });
    run.ended({ outcome: 'complete' });
  }
  const models = requests(await observed.series()).map((name) => /request_model="(.*?)"/.exec(name)?.[1]);
  expect(models).toEqual(['gpt-*', '_OTHER', 'kelp-70b']);
});
