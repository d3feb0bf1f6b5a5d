import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI from 'openai';
import { expect, onTestFinished, test } from 'vitest';
import { startProvider } from '../provider/provider.ts';
import type { Plan } from '../provider/script.ts';
import { freePort } from '../redis/free-port.ts';
import { HoldfastProcess } from './holdfast-process.ts';

const TEXT = 'The tide comes in twice a day, and what holds fast to the rock is there when it is out again.';
/** Stalls in the middle until the provider is closed. */
const HALTED: Plan = {
  parts: [{ text: TEXT }],
  prefill: 'any',
  prefilled: 'exact',
  faults: [{ kind: 'silence', at: { event: 8 } }],
};
/** Longer than four attempts with the longest backoff. */
const AWAY_MS = 6000;

const QUESTION = {
  model: 'm',
  messages: [{ role: 'user', content: 'When does the tide come in?' }],
} satisfies OpenAI.ChatCompletionCreateParams;

async function startHoldfast(base_url: string, port = 0, store = 'memory'): Promise<HoldfastProcess> {
  const holdfast = await HoldfastProcess.start({
    listen: { port, admin_port: 0 },
    upstreams: { main: { base_url } },
    checkpoint: { store, lease_ms: 1000 },
  });
  onTestFinished(() => holdfast.close());
  return holdfast;
}

const clientOf = ({ url }: HoldfastProcess) =>
  new OpenAI({ baseURL: url, apiKey: 'of-the-client', maxRetries: 0 });

/** The whole text, or `undefined` if the stream doesn't end with a finish reason. */
async function streamed(client: OpenAI): Promise<string | undefined> {
  const stream = await client.chat.completions.create({ ...QUESTION, stream: true });
  let said = '';
  let finish: string | null | undefined;
  for await (const { choices } of stream) {
    said += choices[0]?.delta.content ?? '';
    finish ??= choices[0]?.finish_reason;
  }
  return finish === 'stop' ? said : undefined;
}

async function document(client: OpenAI): Promise<string | undefined> {
  const { choices } = await client.chat.completions.create(QUESTION);
  return choices[0]?.finish_reason === 'stop' ? (choices[0].message.content ?? undefined) : undefined;
}

test.for([
  ['a stream', streamed],
  ['a document', document],
] as const)('%s whose provider is restarted in the middle is whole', { timeout: 60_000 }, async ([, ask]) => {
  const first = await startProvider({ scripts: { '*': HALTED } });
  const { port } = first;
  const holdfast = await startHoldfast(first.url);
  const answer = ask(clientOf(holdfast));
  await first.waitForRequests(1);
  await sleep(500);
  await first.close();
  await sleep(AWAY_MS);
  const second = await startProvider({ port, scripts: { '*': { ...HALTED, faults: [] } } });
  onTestFinished(() => second.close());
  expect(await answer).toBe(TEXT);
  expect(second.requests).toHaveLength(1);
});

test('a Holdfast in front of a replica that is killed finishes the answer when that is up again', {
  timeout: 60_000,
}, async () => {
  const provider = await startProvider({ scripts: { '*': HALTED } });
  onTestFinished(() => provider.close());
  const port = await freePort();
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-replica-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const startReplica = () => startHoldfast(provider.url, port, `file:${directory}`);
  const replica = await startReplica();
  const beside = await startHoldfast(replica.url);
  const answer = streamed(clientOf(beside));
  await provider.waitForRequests(1);
  await sleep(500);
  await replica.kill('SIGKILL');
  await sleep(AWAY_MS);
  await startReplica();
  expect(await answer).toBe(TEXT);
  expect(provider.requests).toHaveLength(2);
});
