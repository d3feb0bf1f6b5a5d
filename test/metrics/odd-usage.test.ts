import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { relay } from '../../src/proxy/run/relay.ts';
import { createUndiciTransport } from '../../src/proxy/upstream/undici-transport.ts';
import { listen } from '../proxy/servers.ts';
import { startReplica } from '../replica.ts';

const chunk = (more: object) => `data: ${JSON.stringify({ id: 'c', choices: [], ...more })}\n\n`;
const ANSWER = [
  chunk({ choices: [{ index: 0, delta: { content: 'Kelp' } }] }),
  chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
];

test.each([
  ['negative', '{"prompt_tokens":7,"completion_tokens":-1,"total_tokens":6}', 7],
  ['too large for a number', '{"prompt_tokens":1e400,"completion_tokens":2,"total_tokens":2}', 0],
  ['not whole', '{"prompt_tokens":1.5,"completion_tokens":2,"total_tokens":3}', 1.5],
])('a provider whose counts are %s: its answer is whole all the same', async (...row) => {
  const [, usage, prompt] = row;
  const body = `${ANSWER.join('')}data: {"id":"c","choices":[],"usage":${usage}}\n\ndata: [DONE]\n\n`;
  const provider = createServer((request, response) => {
    request.resume();
    response.setHeader('content-type', 'text/event-stream').end(body);
  });
  const upstream = await listen(provider, 'http');
  onTestFinished(() => upstream.close());
  const transport = createUndiciTransport();
  onTestFinished(() => transport.close());
  const replica = await startReplica(
    { upstreams: { odd: { base_url: upstream.origin } }, metrics: { gen_ai: true } },
    { relay, transport },
  );
  const response = await fetch(`${replica.api}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'kelp',
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: 'user', content: 'Hm?' }],
    }),
  });
  expect(await response.text()).toMatch(/Kelp.*\[DONE\]\n\n$/s);
  await replica.server.close();
  expect(await replica.log()).not.toContain('"level":"error"');
  const text = await replica.metrics.registry.metrics();
  expect(text).toContain('holdfast_runs_total{wire="chat_completions",outcome="complete"} 1');
  expect(text).toContain(`holdfast_tokens_total{kind="prompt"} ${prompt}\n`);
});
