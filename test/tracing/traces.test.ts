import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, onTestFinished, type TestContext, test, vi } from 'vitest';
import { Deployment, modelOf } from '../e2e/deployment.ts';
import type { LogLine } from '../e2e/holdfast-process.ts';
import { post, streamRequest } from '../e2e/raw-client.ts';
import { callTo, TIDES } from '../e2e/situations.ts';
import { payloadsOf } from '../e2e/stream-client.ts';
import { ALL_OF_TALK, beginTalk, fetchRun, RESUMABLE, saidBy } from '../e2e/talk.ts';
import type { Fault } from '../provider/fault.ts';
import type { Part, Plan } from '../provider/script.ts';
import { Collector, type RunTree } from './collector.ts';
import { BUILD_LIMIT_MS, collectorBinary } from './collector-binary.ts';
import { drawn } from './drawing.ts';

vi.setConfig({ testTimeout: 90_000, hookTimeout: 120_000 });

const GUIDE = readFileSync(new URL('../../docs/tracing.md', import.meta.url), 'utf8');
const MAX_ATTEMPTS = 3;
const TEXT = {
  text: 'The tide comes in twice a day, and what holds fast to the rock is there when it is out again.',
};
const CALL = { tool: callTo('call_brest', 'Brest') };
const CUT: Fault = { kind: 'reset', at: { event: 6 } };
const CLIENT_TRACE = '0af7651916cd43dd8448eb211c80319c';
const CLIENT_SPAN = 'b7ad6b7169203331';
const TRACEPARENT = `00-${CLIENT_TRACE}-${CLIENT_SPAN}-01`;
const COLLECTOR_KEY = 'a key of the collector';

let collector: Collector | undefined;
let missing = '';
beforeAll(async () => {
  const binary = await collectorBinary();
  if ('missing' in binary) missing = binary.missing;
  else collector = await Collector.start(binary.path);
}, BUILD_LIMIT_MS);
afterAll(() => collector?.close());

function collectorOf({ skip }: TestContext): Collector {
  return collector ?? skip(`no OpenTelemetry Collector: ${missing}`);
}

const deploymentWith = (more: object): Promise<Deployment> =>
  Deployment.start({
    tracing: { endpoint: collector?.url, headers: { 'x-collector-key': COLLECTOR_KEY } },
    ...more,
  });

/** The tree that the guide shows under this heading. */
function documented(heading: string): string | undefined {
  const section = GUIDE.split(/^#+ /m).find((text) => text.startsWith(`${heading}\n`));
  return /```text\n([^`]*)\n```/.exec(section ?? '')?.[1];
}

describe('a run that stays here', () => {
  let deployment: Deployment;
  beforeAll(async () => {
    if (collector) deployment = await deploymentWith({ recovery: { max_attempts: MAX_ATTEMPTS } });
  });
  afterAll(() => deployment?.close());

  interface Asked extends RunTree {
    readonly run: string;
    readonly body: string;
  }

  async function ask(
    to: Collector,
    question: string,
    plan: Plan,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Asked> {
    deployment.plan(question, plan);
    const tools = [{ type: 'function', function: TIDES }];
    const request = streamRequest(modelOf('vllm'), question, { tools });
    const response = await post(deployment.holdfast.url, request, headers);
    // An interrupted body is an answer, too.
    const body = await response.text().catch(() => '');
    const run = String(response.headers.get('holdfast-run-id'));
    const [tree] = await to.runs(run);
    if (!tree) throw new Error(`there is no trace of ${run}`);
    return { ...tree, run, body };
  }

  const plan = (parts: readonly Part[], faults: readonly Fault[] = []): Plan => ({
    parts,
    faults,
    prefill: 'vllm',
  });

  const linesOf = (run: string): readonly LogLine[] =>
    deployment.holdfast.log.filter((line) => line.run === run);

  test('and goes well', async (context) => {
    const asked = await ask(collectorOf(context), 'healthy', plan([TEXT]));
    expect(drawn(asked)).toBe(documented('A run that goes well'));
    const { span, attempts } = asked;
    expect(span.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'vllm-model',
      'gen_ai.request.stream': true,
      'gen_ai.response.finish_reasons': ['stop'],
      'holdfast.wire': 'chat_completions',
      'holdfast.attempts': 1,
    });
    expect(attempts[0]?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'vllm',
      'gen_ai.request.model': 'vllm-model',
      'gen_ai.response.time_to_first_chunk': expect.any(Number) as number,
      'gen_ai.usage.input_tokens': expect.any(Number) as number,
      'gen_ai.usage.output_tokens': expect.any(Number) as number,
      'server.address': '127.0.0.1',
      'server.port': expect.any(Number) as number,
      'holdfast.characters_added': TEXT.text.length,
    });
    expect(span.resource).toMatchObject({
      'service.name': 'holdfast',
      'service.version': expect.any(String) as string,
      'service.instance.id': expect.any(String) as string,
    });
  });

  test('and is cut twice', async (context) => {
    const asked = await ask(collectorOf(context), 'cut twice', plan([TEXT], [CUT, CUT]));
    expect(drawn(asked)).toBe(documented('A text that is cut twice'));
    const added = asked.attempts.map(({ attributes }) => Number(attributes['holdfast.characters_added']));
    expect(added.reduce((sum, each) => sum + each)).toBe(TEXT.text.length);
    expect(asked.span.events.find(({ name }) => name === 'holdfast.recovered')?.attributes).toMatchObject({
      'holdfast.gap_ms': expect.any(Number) as number,
    });
  });

  test('and is cut in a tool call', async (context) => {
    const parts = [TEXT, CALL];
    const words = TEXT.text.split(' ').length;
    const cut: Fault = { kind: 'reset', at: { event: words + 4 } };
    const asked = await ask(collectorOf(context), 'cut in a call', plan(parts, [cut]));
    expect(drawn(asked)).toBe(documented('A tool call that is cut'));
    expect(asked.span.attributes['gen_ai.response.finish_reasons']).toEqual(['tool_calls']);
  });

  test('and is given up', async (context) => {
    // Attempts count from the last one that delivered content; these faults refuse all others before any content.
    const refused: Fault = { kind: 'reset', at: { before_headers: true } };
    const faults = [CUT, ...Array.from({ length: MAX_ATTEMPTS }, () => refused)];
    const asked = await ask(collectorOf(context), 'given up', plan([TEXT], faults));
    expect(drawn(asked)).toBe(documented('A run that is given up'));
    expect(asked.body).toContain('stream_interrupted');
  });

  test('is part of the trace of its client, and each of its requests is of its attempt', async (context) => {
    const asked = await ask(collectorOf(context), 'continued', plan([TEXT], [CUT]), {
      traceparent: TRACEPARENT,
      tracestate: 'vendor=opaque',
    });
    expect(asked.span).toMatchObject({ traceId: CLIENT_TRACE, parentSpanId: CLIENT_SPAN });
    expect(asked.attempts.map(({ traceId }) => traceId)).toEqual([CLIENT_TRACE, CLIENT_TRACE]);
    const sent = deployment.requests('continued').map(({ headers }) => headers);
    expect(sent.map(({ traceparent }) => traceparent)).toEqual(
      asked.attempts.map(({ spanId }) => `00-${CLIENT_TRACE}-${spanId}-01`),
    );
    expect(sent.map(({ tracestate }) => tracestate)).toEqual(['vendor=opaque', 'vendor=opaque']);
  });

  test('is found by the lines that were logged of it', async (context) => {
    const { run, span } = await ask(collectorOf(context), 'logged', plan([TEXT], [CUT]));
    await deployment.holdfast.logged((line) => line.msg === 'run ended' && line.run === run);
    const lines = linesOf(run);
    expect(lines.map(({ msg }) => msg)).toEqual(['interrupted', 'recovered', 'run ended']);
    for (const line of lines) expect(line).toMatchObject({ trace_id: span.traceId, span_id: span.spanId });
  });

  test('is not traced where its client does not want it, and says so upstream', async (context) => {
    const to = collectorOf(context);
    deployment.plan('unsampled', plan([TEXT]));
    const unsampled = `00-${CLIENT_TRACE.replace('0', '1')}-${CLIENT_SPAN}-00`;
    const request = streamRequest(modelOf('vllm'), 'unsampled');
    const response = await post(deployment.holdfast.url, request, { traceparent: unsampled });
    await response.text();
    const run = String(response.headers.get('holdfast-run-id'));
    const [sent] = deployment.requests('unsampled');
    expect(sent?.headers.traceparent).toMatch(new RegExp(`^${unsampled.slice(0, 35)}-[\\da-f]{16}-00$`));
    // This later run's span has arrived, so the unsampled run would have arrived, too.
    await ask(to, 'after it', plan([TEXT]));
    expect(to.written).not.toContain(run);
  });

  test('leaves no content, client or key with the collector', async (context) => {
    const to = collectorOf(context);
    const private_ = { 'holdfast-thread': 'a thread of somebody', 'idempotency-key': 'a key of somebody' };
    const faults: Fault[] = [CUT, { kind: 'error_openai', at: { event: 6 } }];
    const { run } = await ask(to, 'something nobody else may know', plan([TEXT, CALL], faults), private_);
    expect(to.written).toContain(run);
    const said = ['The tide', 'twice', 'rock', 'Brest', 'days', 'something nobody'];
    const keys = ['client-key', COLLECTOR_KEY, ...Object.values(private_)];
    for (const secret of [...said, ...keys]) expect(to.written).not.toContain(secret);
  });
});

describe('a run of a conversation', () => {
  test('names it in its spans where the configuration wants that', async (context) => {
    const to = collectorOf(context);
    const endpoint = to.url;
    const deployment = await Deployment.start({ tracing: { endpoint, conversation_ids: true } });
    onTestFinished(() => deployment.close());
    deployment.plan('talk', { parts: [TEXT] });
    const request = streamRequest(modelOf('vllm'), 'talk');
    const response = await post(deployment.holdfast.url, request, { 'holdfast-thread': 'T42' });
    await response.text();
    const [tree] = await to.runs(String(response.headers.get('holdfast-run-id')));
    const named = [tree?.span, ...(tree?.attempts ?? [])].map((span) => span?.attributes);
    expect(named).toHaveLength(2);
    for (const attributes of named) expect(attributes).toMatchObject({ 'gen_ai.conversation.id': 'T42' });
  });
});

describe('a run that is taken over', () => {
  let deployment: Deployment;
  beforeAll(async () => {
    if (!collector) return;
    deployment = await deploymentWith({
      replicas: 3,
      checkpoint: { lease_ms: 1000 },
      limits: { drain_ms: 100 },
    });
  });
  afterAll(() => deployment?.close());

  /** Lets one replica begin the answer, stops it, and lets another one finish the answer. */
  async function takeOver(from: number, question: string, signal: NodeJS.Signals): Promise<string> {
    const [first, second] = deployment.replicas.slice(from);
    if (!first || !second) throw new Error('there are not enough replicas');
    const trace = { ...RESUMABLE, traceparent: TRACEPARENT };
    const client = await beginTalk(deployment, question, trace, undefined, first);
    await first.kill(signal);
    await client.ended();
    const cursor = client.payloads.length;
    const body = JSON.stringify({ cursor, tail: client.payloads });
    const headers = { ...trace, 'content-type': 'application/json' };
    const response = await fetchRun(second, `${client.run}/resume`, { method: 'POST', headers, body });
    expect(saidBy([...client.payloads, ...payloadsOf(await response.text())])).toEqual(ALL_OF_TALK);
    return client.run;
  }

  test('has a span of each replica that lived to send one, in the trace that its client says', async (context) => {
    const to = collectorOf(context);
    const lost = await takeOver(0, 'killed', 'SIGKILL');
    const [survivor, ...none] = await to.runs(lost);
    expect(none).toEqual([]);
    expect(survivor && drawn(survivor)).toBe(documented('A run that another replica takes over'));
    expect(survivor?.span).toMatchObject({ traceId: CLIENT_TRACE, parentSpanId: CLIENT_SPAN });
    expect(survivor?.span.attributes['holdfast.takeover.epoch']).toBe(2);

    const released = await takeOver(1, 'released', 'SIGTERM');
    const both = await to.runs(released, 2);
    expect(both.map(drawn).join('\n\n')).toBe(documented('A run that is handed over'));
    expect(both.map(({ span }) => span.traceId)).toEqual([CLIENT_TRACE, CLIENT_TRACE]);
    expect(both[1]?.span.attributes).toMatchObject({
      'holdfast.takeover.epoch': expect.any(Number) as number,
      'holdfast.takeover.after_event': expect.any(Number) as number,
    });
  });
});
