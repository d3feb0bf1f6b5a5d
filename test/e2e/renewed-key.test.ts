import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI from 'openai';
import { expect, onTestFinished, test } from 'vitest';
import { chunkEvent, startProvider } from '../http-peer.ts';
import { HoldfastProcess } from './holdfast-process.ts';

const LIFE_S = 12;
const BEGUN = 'Kelp holds fast ';
const WHOLE = `${BEGUN}to rock.`;

/** Prints a key whose name says when it expires. */
const PRINT_KEY = `const end_ms = Date.now() + ${LIFE_S} * 1000;
  console.log(JSON.stringify({ access_token: 'until-' + end_ms, expires_in: ${LIFE_S} }));`;

const isGood = (credential = '') => Number(credential.replace('Bearer until-', '')) > Date.now();

/** A provider whose keys expire. Its first answer breaks off when the key of its request expires. */
async function startStrictProvider() {
  const keys: string[] = [];
  const url = await startProvider(async (request, response) => {
    const { authorization } = request.headers;
    request.resume();
    if (!isGood(authorization)) {
      response.writeHead(401, { 'content-type': 'application/json' });
      response.end('{"error":{"message":"the key has expired","code":"invalid_api_key"}}');
      return;
    }
    keys.push(String(authorization));
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(chunkEvent({ role: 'assistant', content: keys.length === 1 ? BEGUN : WHOLE }));
    if (keys.length > 1) return void response.end(`${chunkEvent({}, 'stop')}data: [DONE]\n\n`);
    while (isGood(authorization)) {
      response.write(': working\n\n');
      await sleep(100);
    }
    response.destroy();
  });
  return { url, keys };
}

test('an answer that is cut after its key has expired is continued with the next key', {
  timeout: 60_000,
}, async () => {
  const provider = await startStrictProvider();
  const holdfast = await HoldfastProcess.start({
    upstreams: {
      main: { base_url: `${provider.url}/v1`, api_key_command: [process.execPath, '-e', PRINT_KEY] },
    },
  });
  onTestFinished(() => holdfast.close());
  const client = new OpenAI({ baseURL: holdfast.url, apiKey: 'of-the-client', maxRetries: 0 });
  const stream = await client.chat.completions.create({
    model: 'm',
    stream: true,
    messages: [{ role: 'user', content: 'Tell me.' }],
  });
  let said = '';
  for await (const { choices } of stream) said += choices[0]?.delta.content ?? '';
  expect(said).toBe(WHOLE);
  expect(new Set(provider.keys).size).toBe(2);
  expect(JSON.stringify(holdfast.log)).not.toContain('until-');
});

test('a command that takes too long at the start is named, and its server does not start', {
  timeout: 60_000,
}, async () => {
  const started = HoldfastProcess.start({
    upstreams: { main: { base_url: 'http://127.0.0.1:9/v1', api_key_command: ['sleep', '100'] } },
  });
  await expect(started).rejects.toThrow('upstreams.main.api_key_command: sleep has taken longer than 30 s');
});
