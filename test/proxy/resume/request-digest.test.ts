import { expect, test } from 'vitest';
import { type DigestedRequest, requestDigest } from '../../../src/proxy/resume/request-digest.ts';

const digest = (body: string, more: Partial<DigestedRequest> = {}) =>
  requestDigest('secret', { wire: 'chat_completions', events: 'none', ...more, body });

const BODY =
  '{"model":"m","messages":[{"role":"user","content":"Hi"}],"seed":9007199254740993,"stream":true}';

test.each([
  [
    'in another order, as Codex does with its metadata',
    '{"stream":true,"seed":9007199254740993,"messages":[{"content":"Hi","role":"user"}],"model":"m"}',
  ],
  [
    'without `stream`, as Claude Code does',
    '{"model":"m","messages":[{"role":"user","content":"Hi"}],"seed":9007199254740993}',
  ],
  [
    'with fields that say nothing about the answer',
    BODY.replace(
      '"stream":true',
      '"stream":false,"stream_options":{"include_usage":true},"client_metadata":{"turn":"2"},"request_id":"b","rid":"c"',
    ),
  ],
  ['in other white space and escapes', ` ${BODY.replace('Hi', '\\u0048i').replaceAll(',', ', ')}\n`],
])('a request is the same %s', (_, again) => {
  expect(digest(again)).toBe(digest(BODY));
});

test.each([
  ['a number differs in digits that parsing rounds', BODY.replace('993', '992')],
  ['a number is written otherwise', BODY.replace('9007199254740993', '9007199254740993.0')],
  ['a message is another one', BODY.replace('Hi', 'Ho')],
  ['its messages come in another order', BODY.replace('[{', '[{"role":"user","content":""},{')],
  ['a field of that name is part of a message', BODY.replace('"role"', '"stream":true,"role"')],
  ['a field is added that may change the answer', BODY.replace('"seed"', '"temperature":1,"seed"')],
])('a request is another one when %s', (_, other) => {
  expect(digest(other)).not.toBe(digest(BODY));
});

test('a request is another one on another wire, with other events, and for another secret', () => {
  expect(digest(BODY, { wire: 'messages' })).not.toBe(digest(BODY));
  expect(digest(BODY, { events: 'chunks' })).not.toBe(digest(BODY));
  expect(requestDigest('other', { wire: 'chat_completions', events: 'none', body: BODY })).not.toBe(
    digest(BODY),
  );
});
