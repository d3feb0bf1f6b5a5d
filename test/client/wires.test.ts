import { describe, expect, test } from 'vitest';
import { wireAt } from '../../src/client/wires.ts';

describe('the wire of a path', () => {
  test.each([
    ['/v1/chat/completions', '/chat/completions', ''],
    ['/v1/completions', '/completions', ''],
    ['/v1/messages', '/messages', ''],
    ['/v1/responses', '/responses', ''],
    ['/v1/responses/', '/responses', ''],
    ['/messages', '/messages', ''],
    ['/llm/v1/chat/completions', '/chat/completions', '/llm'],
    ['/llm/chat/completions', '/chat/completions', '/llm'],
    ['/chat/v1/completions', '/completions', '/chat'],
    ['/v1/messages/v1/responses', '/responses', '/v1/messages'],
  ])('of %s', (path, wire, prefix) => {
    expect(wireAt(path)).toMatchObject({ wire: { path: wire }, prefix });
  });

  test.each([
    '/v1/embeddings',
    '/v1/chat/completions/chatcmpl-1',
    '/v1/messages/count_tokens',
    '/v1/messages/batches',
    '/v1/responses/resp_1/cancel',
    '/v1/responses/input_tokens',
    '/v1/my-responses',
    '/v1/chatcompletions',
    '/v1completions',
    '/',
  ])('there is none at %s', (path) => {
    expect(wireAt(path)).toBeUndefined();
  });
});

const isLast = (path: string, payload: string) => wireAt(path)?.wire.isLast(payload);

describe.each(['/v1/chat/completions', '/v1/completions'])('the last event on %s', (path) => {
  test.each(['[DONE]', '[DONE] ', '{"error":{"message":"m"}}', '{"id":"c","choices":[],"error":"m"}'])(
    '%s',
    (payload) => {
      expect(isLast(path, payload)).toBe(true);
    },
  );

  test.each([
    '{"choices":[{"delta":{"content":"[DONE]"}}]}',
    '{"choices":[{"delta":{"content":"\\"error\\""}}]}',
    '{"choices":[{"delta":{"content":"{\\"error\\":1}"}}],"error":null}',
    '{"type":"message_stop"}',
    '{"error"',
    'null "error"',
    '"error"',
  ])('not %s', (payload) => {
    expect(isLast(path, payload)).toBe(false);
  });
});

describe('the last event on /v1/messages', () => {
  test.each([
    '{"type":"message_stop"}',
    '{ "type": "message_stop", "more": 1 }',
    '{"type":"error","error":{"type":"api_error","message":"m"}}',
  ])('%s', (payload) => {
    expect(isLast('/v1/messages', payload)).toBe(true);
  });

  test.each([
    '[DONE]',
    '{"type":"message_delta","delta":{"stop_reason":"end_turn"}}',
    '{"type":"content_block_delta","delta":{"text":"\\"message_stop\\""}}',
    '{"type":"content_block_delta","delta":{"type":"error"}}',
    '{"type":"content_block_stop","of":"message_stop"}',
    '{"error":{"message":"m"}}',
    '"message_stop"',
    '{"type":"message_stop"',
  ])('not %s', (payload) => {
    expect(isLast('/v1/messages', payload)).toBe(false);
  });
});

describe('the last event on /v1/responses', () => {
  test.each([
    '{"type":"response.completed","response":{}}',
    '{"type":"response.incomplete","response":{}}',
    '{"type":"response.cancelled","response":{}}',
    '{"type":"response.failed","response":{"error":{}}}',
    '{"type":"response.failed","response":{},"error":{"message":"m"}}',
    '{"type":"error","code":"c","message":"m"}',
    '{"type":"error","error":null,"message":"m"}',
  ])('%s', (payload) => {
    expect(isLast('/v1/responses', payload)).toBe(true);
  });

  test.each([
    '[DONE]',
    '{"type":"response.created","response":{"error":null}}',
    '{"type":"response.output_text.done","text":"\\"response.completed\\""}',
    '{"type":"response.output_text.delta","delta":"{\\"type\\":\\"error\\"}"}',
    '{"type":"response.completed"',
    'null "error"',
    // `response.failed` follows this event.
    '{"type":"error","error":{"message":"m"}}',
  ])('not %s', (payload) => {
    expect(isLast('/v1/responses', payload)).toBe(false);
  });
});
