import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { startProvider } from '../http-peer.ts';
import type { RawAnswer } from '../proxy/wires/raw-relay.ts';
import { SAID_TEXT, SlowCall } from '../proxy/wires/slow-call.ts';
import { HoldfastProcess } from './holdfast-process.ts';

/** The default of `delivery.keepalive_ms`, and how late a busy machine may be. */
const KEEPALIVE_MS = 15_000;
const LATE_MS = 2_000;
/**
 * The call ends between two keep-alives. A keep-alive that falls due while the end of the call waits for the journal is
 * only a comment, since the events before it haven't been sent.
 */
const SLOW = new SlowCall(14, 7_000);
const LEAST_MS = 98_000;

const ANSWERS: Readonly<Record<string, RawAnswer>> = {
  '/v1/chat/completions': SLOW.chat,
  '/v1/responses': SLOW.responses,
  '/v1/messages': SLOW.messages,
};
const REQUESTS: Readonly<Record<string, object>> = {
  '/v1/chat/completions': { messages: [{ role: 'user', content: 'Write.' }] },
  '/v1/responses': { input: 'Write.' },
  '/v1/messages': { max_tokens: 1000, messages: [{ role: 'user', content: 'Write.' }] },
};

async function say(answer: RawAnswer, response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const part of answer) {
    if (typeof part === 'number') await sleep(part);
    else if (!response.write(part)) await once(response, 'drain');
  }
  response.end();
}

test(`a call that is held for ${LEAST_MS / 1000} s leaves no wire without an event for longer than the keep-alive`, {
  timeout: 2 * LEAST_MS,
}, async () => {
  let requests = 0;
  const provider = await startProvider((request, response) => {
    requests++;
    request.resume();
    void say(ANSWERS[request.url ?? ''] ?? [], response);
  });
  const holdfast = await HoldfastProcess.start({ upstreams: { main: { base_url: `${provider}/v1` } } });
  onTestFinished(() => holdfast.close());

  const read = async (path: string) => {
    const began_ms = performance.now();
    const response = await fetch(`${holdfast.url}${path.slice('/v1'.length)}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', stream: true, ...REQUESTS[path] }),
    });
    let body = '';
    let last_ms = began_ms;
    let gap_ms = 0;
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      body += piece;
      if (!/^data:/m.test(piece)) continue;
      gap_ms = Math.max(gap_ms, performance.now() - last_ms);
      last_ms = performance.now();
    }
    return { path, body, gap_ms, took_ms: performance.now() - began_ms };
  };
  for (const { path, body, gap_ms, took_ms } of await Promise.all(Object.keys(ANSWERS).map(read))) {
    expect(took_ms, path).toBeGreaterThanOrEqual(LEAST_MS);
    expect(gap_ms, path).toBeLessThan(KEEPALIVE_MS + LATE_MS);
    expect(body, path).toContain(SAID_TEXT);
    expect(body, path).toContain(JSON.stringify(SLOW.arguments).slice(1, -1));
    expect(body, path).not.toContain(': hb');
  }
  expect(requests).toBe(3);
});
