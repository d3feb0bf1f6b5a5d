import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startReplicaProcess, temporaryDirectory } from '../cli-process.ts';
import { post, streamRequest } from '../e2e/raw-client.ts';
import { startProvider } from '../provider/provider.ts';
import { PoorReceiver } from './poor-receiver.ts';

vi.setConfig({ testTimeout: 60_000 });

const TRACE = {
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: 'vendor=opaque',
};
/** Excludes the bare API package, which `prom-client` depends on. */
const OF_TRACING = /node_modules\/@opentelemetry\/(?!api\/)|\/src\/tracing\/tracing\./;

/**
 * Gets one answer from a new process. Returns the modules that it loaded, according to V8, and the provider's requests.
 */
async function answerOnce(environment: Record<string, string> = {}) {
  const provider = await startProvider({ scripts: { '*': { parts: [{ text: 'Twice a day.' }] } } });
  onTestFinished(() => provider.close());
  const directory = temporaryDirectory();
  const words = ['--upstream', provider.url, '--store', 'memory'];
  const { api, child, exit } = await startReplicaProcess(words, {
    ...environment,
    NODE_V8_COVERAGE: directory,
  });
  const response = await post(`${api}/v1`, streamRequest('a-model', 'how is the tide?'), TRACE);
  expect(await response.text()).toContain('Twice');
  child.kill('SIGTERM');
  expect(await exit).toEqual([0, null]);
  const reports = readdirSync(directory).map(
    (name) => JSON.parse(readFileSync(join(directory, name), 'utf8')) as { result: { url: string }[] },
  );
  const loaded = reports.flatMap(({ result }) => result.map(({ url }) => url));
  return { loaded, sent: provider.requests[0]?.headers };
}

test('without tracing nothing of its SDK is loaded, and the trace of a client passes as it came', async () => {
  const { loaded, sent } = await answerOnce({ OTEL_SERVICE_NAME: 'holdfast' });
  expect(loaded.filter((url) => url.includes('/src/proxy/run/relay'))).not.toEqual([]);
  expect(loaded.filter((url) => OF_TRACING.test(url))).toEqual([]);
  expect(sent).toMatchObject(TRACE);
});

test('with tracing it is', async () => {
  const receiver = await PoorReceiver.start('taking');
  onTestFinished(() => receiver.close());
  const { loaded, sent } = await answerOnce({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url });
  expect(loaded.filter((url) => OF_TRACING.test(url))).not.toEqual([]);
  expect(sent?.traceparent).not.toBe(TRACE.traceparent);
  // The process exports its last spans when it ends.
  expect(new Set(receiver.spans.map(({ kind }) => kind))).toEqual(new Set(['client', 'server']));
});
