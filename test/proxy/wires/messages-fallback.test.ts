import { expect, test } from 'vitest';
import { relay } from '../../../src/proxy/run/relay.ts';
import { startProvider } from '../../http-peer.ts';
import { startReplica, upstreamsAt } from '../../replica.ts';

/*
 * With the beta `server-side-fallback-2026-07-01` another model continues an answer that the first one has refused: in the
 * same stream, behind a block of the type `fallback`.
 */

const event = (fields: { readonly type: string; readonly [field: string]: unknown }) =>
  `event: ${fields.type}\ndata: ${JSON.stringify(fields)}\n\n`;
const start = (index: number, content_block: object) =>
  event({ type: 'content_block_start', index, content_block });
const say = (index: number, text: string) =>
  event({ type: 'content_block_delta', index, delta: { type: 'text_delta', text } });
const stop = (index: number) => event({ type: 'content_block_stop', index });

const BEGINNING = event({
  type: 'message_start',
  message: {
    ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-opus-4-8', content: [] },
    ...{ stop_reason: null, stop_sequence: null, usage: { input_tokens: 9, output_tokens: 1 } },
  },
});
const END =
  event({
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: {
      output_tokens: 9,
      iterations: [
        { type: 'message', output_tokens: 3 },
        { type: 'fallback_message', output_tokens: 6 },
      ],
    },
  }) + event({ type: 'message_stop' });

const TEXT = { type: 'text', text: '' };
const REFUSED = start(0, TEXT) + say(0, 'The tide comes in twice ') + stop(0);
const FALLBACK =
  start(1, { type: 'fallback', from: { model: 'claude-opus-4-8' }, to: { model: 'claude-sonnet-5' } }) +
  stop(1);
const SAID = 'a day, and what holds fast is there ';
const REST = 'when it is out again.';

/** What the client gets of an answer that the provider cuts off behind `first`, and how often the provider was asked. */
async function answered(first: string, isCut: boolean, rest = '') {
  let requests = 0;
  const provider = await startProvider((request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    if (requests++ > 0) response.end(BEGINNING + start(0, TEXT) + say(0, rest) + stop(0) + END);
    else if (isCut) response.write(first, () => setTimeout(() => response.destroy(), 50));
    else response.end(first);
  });
  const replica = await startReplica(
    { ...upstreamsAt(`${provider}/v1`), recovery: { backoff_ms: 1 } },
    { relay },
  );
  const answer = await fetch(`${replica.api}/v1/messages`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-api-key': 'key',
      'anthropic-version': '2023-06-01',
      'anthropic-beta': 'server-side-fallback-2026-07-01',
    },
    body: JSON.stringify({
      model: 'claude-opus-4-8',
      max_tokens: 1000,
      stream: true,
      messages: [{ role: 'user', content: 'Tides?' }],
    }),
  });
  return { text: await answer.text(), requests };
}

const eventsIn = (stream: string) =>
  stream
    .split('\n\n')
    .filter(Boolean)
    .map((lines) => JSON.parse(lines.slice(lines.indexOf('{'))) as Record<string, unknown>)
    .map(({ usage: _, ...said }) => said);

test('an answer that another model continues passes as it came', async () => {
  const whole = BEGINNING + REFUSED + FALLBACK + start(2, TEXT) + say(2, SAID + REST) + stop(2) + END;
  expect(await answered(whole, false)).toEqual({ text: whole, requests: 1 });
});

test('one that is cut while the other model speaks is continued in its block', async () => {
  const first = BEGINNING + REFUSED + FALLBACK + start(2, TEXT) + say(2, SAID);
  const { text } = await answered(first, true, `The tide comes in twice ${SAID}${REST}`);
  expect(eventsIn(text)).toEqual(eventsIn(first + say(2, REST) + stop(2) + END));
});

test('one that is cut before the other model speaks has the block, and one behind it', async () => {
  const first = BEGINNING + REFUSED + FALLBACK;
  const { text } = await answered(first, true, `The tide comes in twice ${SAID}${REST}`);
  const told = eventsIn(text);
  expect(told.slice(0, eventsIn(first).length)).toEqual(eventsIn(first));
  const said = told.flatMap(({ delta }) => (delta as { readonly text?: string } | undefined)?.text ?? []);
  expect(said.join('')).toBe(`The tide comes in twice ${SAID}${REST}`);
  const started = told.filter(({ type }) => type === 'content_block_start').map(({ index }) => index);
  expect(started).toEqual([0, 1, 2]);
});
