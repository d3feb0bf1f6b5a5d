import { expect, onTestFinished, test } from 'vitest';
import { startProvider } from '../http-peer.ts';
import { startReceiver, WEBHOOK_SECRET } from '../webhooks/receiver.ts';
import { HoldfastProcess } from './holdfast-process.ts';

test('a replica that is stopped tries a webhook once more before it ends, signed with a secret from a file', async () => {
  const provider = await startProvider((request, response) => {
    request.resume();
    response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"kelp"}}');
  });
  const receiver = await startReceiver();
  const holdfast = await HoldfastProcess.start(
    {
      upstreams: { provider: { base_url: `${provider}/v1` } },
      webhooks: [{ url: receiver.url, secret_file: 'webhook-secret' }],
    },
    { 'webhook-secret': `${WEBHOOK_SECRET}\n` },
  );
  onTestFinished(() => holdfast.close());
  const refused = await fetch(`${holdfast.url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer k', 'holdfast-task': 'T1' },
    body: '{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}',
  });
  expect(refused.status).toBe(400);
  const first = await receiver.next();
  first.answer(503);
  const stopped = holdfast.stop();
  const second = await receiver.next();
  second.answer(204);
  expect(await stopped).toEqual({ code: 0, signal: null });
  expect([second.id, second.payload]).toEqual([first.id, first.payload]);
  expect(first.payload).toMatchObject({ type: 'task.step_failed', data: { task: 'T1', step: 1 } });
  expect(JSON.stringify(first.payload)).not.toContain('kelp');
});
