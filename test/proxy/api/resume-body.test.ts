import { expect, it } from 'vitest';
import { resumeBody } from '../../../src/proxy/api/runs-api.ts';

const RUN_BYTES = 20;
const BODY_BYTES = 80;
const LIMITS = { run_bytes: RUN_BYTES, body_bytes: BODY_BYTES };

const body = (fields: object = {}) =>
  JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user' }], ...fields });

it.each([
  [{ cursor: 0 }, { cursor: 0, tail: [] }],
  [
    { cursor: 7, tail: ['{"a":1}', '[DONE]'] },
    { cursor: 7, tail: ['{"a":1}', '[DONE]'] },
  ],
  [
    { cursor: 1, tail: ['x'.repeat(RUN_BYTES)] },
    { cursor: 1, tail: ['x'.repeat(RUN_BYTES)] },
  ],
  [
    { cursor: 0, request: { path: '/v1/messages', body: body() } },
    { cursor: 0, tail: [], repeated: { wire: 'messages', model: 'm', body: body() } },
  ],
  [
    { cursor: 0, request: { path: '/v1/chat/completions', body: body() } },
    { cursor: 0, tail: [], repeated: { wire: 'chat_completions', model: 'm', body: body() } },
  ],
])('%j', (fields, expected) => {
  expect(resumeBody(fields, LIMITS)).toEqual(expected);
});

const REQUESTS: readonly (readonly [unknown, string, string | null])[] = [
  ['text', 'invalid_field', 'request.path'],
  [{ body: body() }, 'invalid_field', 'request.path'],
  [{ path: '/v1/messages/count_tokens', body: body() }, 'invalid_field', 'request.path'],
  [{ path: '/v1/messages' }, 'invalid_field', 'request.body'],
  [{ path: '/v1/messages', body: {} }, 'invalid_field', 'request.body'],
  [{ path: '/v1/messages', body: '{' }, 'invalid_json', null],
  [{ path: '/v1/messages', body: body({ stream: false }) }, 'invalid_field', 'request.body'],
  [{ path: '/v1/messages', body: body({ messages: [] }) }, 'invalid_field', 'messages'],
  [{ path: '/v1/messages', body: body({ user: 'x'.repeat(BODY_BYTES) }) }, 'invalid_field', 'request.body'],
];

it.each<readonly [Readonly<Record<string, unknown>>, string, string | null]>([
  ...REQUESTS.map(([request, code, param]) => [{ cursor: 0, request }, code, param] as const),
  [{}, 'missing_field', 'cursor'],
  [{ cursor: '7' }, 'invalid_field', 'cursor'],
  [{ cursor: -1 }, 'invalid_field', 'cursor'],
  [{ cursor: 1.5 }, 'invalid_field', 'cursor'],
  [{ cursor: null }, 'invalid_field', 'cursor'],
  [{ cursor: 2 ** 53 }, 'invalid_field', 'cursor'],
  [{ cursor: 1, tail: 'x' }, 'invalid_field', 'tail'],
  [{ cursor: 1, tail: ['x', 'y'] }, 'invalid_field', 'tail'],
  [{ cursor: 2, tail: ['x', {}] }, 'invalid_field', 'tail[1]'],
  [{ cursor: 1, tail: ['x\ndata: y'] }, 'invalid_field', 'tail[0]'],
  [{ cursor: 1, tail: ['x\r'] }, 'invalid_field', 'tail[0]'],
  // The limit counts bytes, not characters.
  [{ cursor: 2, tail: ['x'.repeat(RUN_BYTES - 1), 'é'] }, 'invalid_field', 'tail'],
])('%j is refused', (fields, code, param) => {
  try {
    resumeBody(fields, LIMITS);
  } catch (error) {
    expect(JSON.parse((error as { body: string }).body).error).toMatchObject({ code, param });
    return;
  }
  throw new Error('the body was taken');
});
