import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { completeConfiguration } from '../../src/config/load.ts';
import { createLogger } from '../../src/lib/log.ts';
import { systemTime } from '../../src/lib/time.ts';
import type { ObservedRun } from '../../src/proxy/run/context/run-observer.ts';
import { tracingSettings } from '../../src/tracing/settings.ts';
import { createTracing } from '../../src/tracing/tracing.ts';
import { startReplicaProcess } from '../cli-process.ts';
import { post, streamRequest } from '../e2e/raw-client.ts';
import { payloadsOf } from '../e2e/stream-client.ts';
import { saidBy } from '../e2e/talk.ts';
import { type Provider, startProvider } from '../provider/provider.ts';
import { NO_UPSTREAM_URL, upstreamsAt } from '../replica.ts';
import { type Manner, PoorReceiver } from './poor-receiver.ts';

vi.setConfig({ testTimeout: 90_000 });

const TEXT = 'The tide comes in twice a day, and goes out again as often.';
const LINES = {
  lost: 'traces cannot be exported: dropping them',
  back: 'traces are exported again',
};
/** Shortens the default of ten seconds. */
const PATIENCE = { OTEL_EXPORTER_OTLP_TIMEOUT: '300' };

async function receiver(manner: Manner): Promise<PoorReceiver> {
  const started = await PoorReceiver.start(manner);
  onTestFinished(() => started.close());
  return started;
}

describe('a replica works as ever', () => {
  let provider: Provider;
  beforeAll(async () => {
    provider = await startProvider({ scripts: { '*': { parts: [{ text: TEXT }] } } });
  });
  afterAll(() => provider.close());

  const start = (endpoint: string) =>
    startReplicaProcess(['--upstream', provider.url, '--store', 'memory'], {
      ...PATIENCE,
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    });

  async function ask(api: string): Promise<void> {
    const response = await post(`${api}/v1`, streamRequest('a-model', 'how is the tide?'));
    expect(saidBy(payloadsOf(await response.text()))).toMatchObject({
      text: TEXT,
      finish: ['stop'],
      done: true,
    });
  }

  const told = (lines: readonly string[], message: string): number =>
    lines.filter((line) => (JSON.parse(line) as { msg: string }).msg === message).length;

  const until = (lines: readonly string[], message: string) =>
    vi.waitFor(() => expect(told(lines, message)).toBe(1), { timeout: 30_000, interval: 20 });

  test.each<Manner>(['unavailable', 'refusing', 'silent', 'dripping'])(
    'by one that is %s, which is logged once',
    async (manner) => {
      const poor = await receiver(manner);
      const { api, lines, child, exit, stderr } = await start(poor.url);
      await ask(api);
      await poor.asked(1);
      if (manner !== 'dripping') await until(lines, LINES.lost);
      await ask(api);
      child.kill('SIGTERM');
      // The flush is bounded, so a receiver that never answers can't keep a replica alive.
      expect(await exit).toEqual([0, null]);
      expect(told(lines, LINES.lost)).toBeLessThanOrEqual(1);
      expect(told(lines, LINES.back)).toBe(0);
      expect(await stderr).toMatch(/^holdfast [^\n]*\n$/);
    },
  );

  test('without one, and logs when there is one again', async () => {
    const gone = await PoorReceiver.start('taking');
    const { url } = gone;
    await gone.close();
    const { api, lines } = await start(url);
    await ask(api);
    await until(lines, LINES.lost);
    const lost = lines.find((line) => line.includes(LINES.lost));
    expect(JSON.parse(lost ?? '')).toMatchObject({ level: 'warn', err: { code: 'ECONNREFUSED' } });
  });

  test('and logs when the receiver works again, with what was lost', async () => {
    const poor = await receiver('unavailable');
    const { api, lines } = await start(poor.url);
    await ask(api);
    await until(lines, LINES.lost);
    poor.manner = 'taking';
    await ask(api);
    await until(lines, LINES.back);
    const back = JSON.parse(lines.find((line) => line.includes(LINES.back)) ?? '') as object;
    // The run and its attempt.
    expect(back).toMatchObject({ level: 'info', lost_spans: 2, outage_ms: expect.any(Number) as number });
  });
});

test('what waits for a receiver is bounded, however many runs there are', async () => {
  const poor = await receiver('silent');
  const lines = new PassThrough();
  const log = createLogger('debug', lines);
  const { settings } = tracingSettings({ endpoint: poor.url }, {});
  if (!settings) throw new Error('tracing is off');
  const configuration = completeConfiguration(upstreamsAt(NO_UPSTREAM_URL));
  const { observerOf, close } = createTracing(settings, log, systemTime);
  const observer = observerOf(configuration);
  const run: ObservedRun = {
    run: 'run_1',
    wire: 'chat_completions',
    model: 'm'.repeat(100_000),
    upstream: 'provider',
    streamed: true,
    resumable: false,
    created_at_ms: 0,
    answer: { characters: 0, tool_calls: 0, text: '' },
  };
  const count = 10_000;
  for (let index = 0; index < count; index++) observer.begin(run)?.ended({ outcome: 'complete' });
  await poor.asked(1);
  poor.manner = 'taking';
  await close();
  expect(poor.spans.length).toBeGreaterThan(2000);
  expect(poor.spans.length).toBeLessThan(2300);
  for (const { name, attributes } of poor.spans) {
    expect(name.length).toBeLessThan(150);
    expect(String(attributes['gen_ai.request.model'])).toHaveLength(256);
  }
  expect(await text(lines.end())).not.toContain('mmmmm');
});
