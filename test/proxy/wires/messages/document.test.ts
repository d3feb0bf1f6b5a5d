import { describe, expect, test } from 'vitest';
import { messagesWire } from '../../../../src/proxy/wires/messages/wire.ts';
import { documentOf } from '../document-of.ts';

const start = {
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 25, cache_read_input_tokens: 7, service_tier: 'standard', output_tokens: 1 },
  },
};
const end = (more: object = {}, usage: object = { output_tokens: 15 }) => [
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage, ...more },
  { type: 'message_stop' },
];
const block = (index: number, content_block: object, ...deltas: readonly object[]) => [
  { type: 'content_block_start', index, content_block },
  ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
  { type: 'content_block_stop', index },
];
const contentOf = (...blocks: readonly (readonly object[])[]) =>
  documentOf(messagesWire, [start, { type: 'ping' }, ...blocks.flat(), ...end()])?.content;

describe('a block', () => {
  test('of text has its citations', () => {
    const citation = { type: 'char_location', cited_text: 'Kelp', document_index: 0 };
    expect(
      contentOf(
        block(
          0,
          { type: 'text', text: '', citations: null },
          { type: 'citations_delta', citation },
          { type: 'text_delta', text: 'Kelp ' },
          { type: 'text_delta', text: 'holds.' },
          { type: 'citations_delta', citation },
        ),
      ),
    ).toEqual([{ type: 'text', text: 'Kelp holds.', citations: [citation, citation] }]);
  });

  test('of thinking has its signature, and a redacted one its data', () => {
    const redacted = { type: 'redacted_thinking', data: 'secret' };
    expect(
      contentOf(
        block(
          0,
          { type: 'thinking', thinking: '', signature: '' },
          { type: 'thinking_delta', thinking: 'Hm, ' },
          { type: 'thinking_delta', thinking: 'yes.' },
          { type: 'signature_delta', signature: 'signed' },
        ),
        block(1, redacted),
      ),
    ).toEqual([{ type: 'thinking', thinking: 'Hm, yes.', signature: 'signed' }, redacted]);
  });

  test('of a tool has its input parsed', () => {
    const use = { type: 'tool_use', id: 'toolu_1', name: 'tides', input: {} };
    const input = (partial_json: string) => ({ type: 'input_json_delta', partial_json });
    expect(
      contentOf(
        block(0, use, input(''), input('{"port": "Br'), input('est"}')),
        block(1, { ...use, id: 'toolu_2' }, input('')),
        block(2, { ...use, id: 'toolu_3', input: { whole: 1 } }),
      ),
    ).toEqual([
      { ...use, input: { port: 'Brest' } },
      { ...use, id: 'toolu_2' },
      { ...use, id: 'toolu_3', input: { whole: 1 } },
    ]);
  });

  test('of a tool is never half a call', () => {
    const use = { type: 'tool_use', id: 'toolu_1', name: 'tides', input: {} };
    const half = { type: 'input_json_delta', partial_json: '{"port": "Br' };
    expect(contentOf(block(0, use, half))).toBeUndefined();
  });

  test('of a tool that the provider runs is what it is, with its result', () => {
    const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} };
    const result = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [{ url: 'a' }] };
    const query = { type: 'input_json_delta', partial_json: '{"query":"kelp"}' };
    expect(contentOf(block(0, search, query), block(1, result))).toEqual([
      { ...search, input: { query: 'kelp' } },
      result,
    ]);
  });

  test('of a kind that is not known continues in the same way', () => {
    expect(
      contentOf(
        block(
          0,
          { type: 'compaction', content: null },
          { type: 'compaction_delta', content: 'In ' },
          { type: 'compaction_delta', content: 'short.' },
        ),
      ),
    ).toEqual([{ type: 'compaction', content: 'In short.' }]);
  });
});

test('the message ends as the last report says, with the totals of all of it', () => {
  const more = {
    delta: { stop_reason: 'stop_sequence', stop_sequence: 'END', container: { id: 'c' } },
    context_management: { applied_edits: [] },
  };
  const usage = {
    input_tokens: 30,
    cache_read_input_tokens: null,
    output_tokens: 15,
    server_tool_use: { web_search_requests: 1 },
  };
  expect(documentOf(messagesWire, [start, ...end(more, usage)])).toEqual({
    ...start.message,
    stop_reason: 'stop_sequence',
    stop_sequence: 'END',
    container: { id: 'c' },
    context_management: { applied_edits: [] },
    usage: {
      input_tokens: 30,
      cache_read_input_tokens: 7,
      service_tier: 'standard',
      output_tokens: 15,
      server_tool_use: { web_search_requests: 1 },
    },
  });
});

test('what is kept besides text and calls is counted', () => {
  const fold = messagesWire.document.fold();
  const result = { type: 'web_search_tool_result', content: [{ encrypted_content: 'A'.repeat(500) }] };
  for (const event of [
    start,
    ...block(0, { type: 'text', text: '' }, { type: 'text_delta', text: 'B'.repeat(500) }),
  ])
    fold.add(JSON.stringify(event));
  const before = fold.extra_bytes;
  for (const event of block(1, result)) fold.add(JSON.stringify(event));
  expect(before).toBeLessThan(100);
  expect(fold.extra_bytes - before).toBeGreaterThan(500);
});
