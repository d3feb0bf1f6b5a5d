import { describe, expect, test } from 'vitest';
import { NoticeForm } from '../../../../src/proxy/run/notices/noticed-relay.ts';
import { chatNotices } from '../../../../src/proxy/wires/chunks/chat-conversation.ts';
import type { Notice } from '../../../../src/proxy/wires/common/conversation.ts';
import { DIALECTS } from '../../../../src/proxy/wires/dialects/registry.ts';
import { messagesNotices } from '../../../../src/proxy/wires/messages/conversation.ts';

const INSTRUCTION: Notice = { place: 'instructions', text: 'told' };
const RESULT: Notice = { place: 'tool_results', text: 'told' };
const BODY =
  '{ "model": "m", "messages": [{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}] }';
const RESULTS = '{"messages":[{"role":"tool","tool_call_id":"a","content":"rain"}]}';

const messagesIn = (body: string) => (JSON.parse(body) as { messages: object[] }).messages;

describe('notices', () => {
  test('are told by an answer that begins', () => {
    const form = new NoticeForm([INSTRUCTION], chatNotices, DIALECTS.openai);
    expect(messagesIn(form.bodyOf(BODY))).toHaveLength(3);
    expect(form.fate).toBe('unseen');
    expect(form.refused(200)).toBe(false);
    expect(form.fate).toBe('told');
  });

  test.each([400, 422, 500])('that are refused with %i are joined, and then left out', (status) => {
    const form = new NoticeForm([INSTRUCTION], chatNotices, DIALECTS.vllm);
    expect(form.refused(status)).toBe(true);
    expect(messagesIn(form.bodyOf(BODY))).toEqual([
      { role: 'system', content: 'Be brief.\n\ntold' },
      { role: 'user', content: 'Hi' },
    ]);
    expect(form.refused(status)).toBe(true);
    expect(form.bodyOf(BODY)).toBe(BODY);
    expect(form.refused(200)).toBe(false);
    expect(form.fate).toBe('refused');
  });

  test.each([401, 403, 404, 408, 409, 413, 429, 502, 503, 529])('are not to blame for a %i', (status) => {
    const form = new NoticeForm([INSTRUCTION], chatNotices, DIALECTS.openai);
    expect(form.refused(status)).toBe(false);
    expect(form.fate).toBe('unseen');
  });

  test('are there again after a request that was refused without them, and are blamed no more', () => {
    const form = new NoticeForm([INSTRUCTION], chatNotices, DIALECTS.openai);
    expect([500, 500, 500].map((status) => form.refused(status))).toEqual([true, true, false]);
    expect(form.fate).toBe('unseen');
    expect(messagesIn(form.bodyOf(BODY))).toHaveLength(3);
    expect(form.refused(500)).toBe(false);
    expect(form.refused(200)).toBe(false);
    expect(form.fate).toBe('told');
  });

  test('that were read once stay in what is asked for afterwards', () => {
    const form = new NoticeForm([INSTRUCTION], chatNotices, DIALECTS.openai);
    form.refused(200);
    expect(form.refused(400)).toBe(false);
    expect(messagesIn(form.bodyOf(BODY))).toHaveLength(3);
    expect(form.fate).toBe('told');
  });

  test('that were refused once stay out of what is asked for afterwards', () => {
    const form = new NoticeForm([INSTRUCTION], chatNotices, DIALECTS.openai);
    for (const status of [400, 400, 200]) form.refused(status);
    expect(form.bodyOf(BODY)).toBe(BODY);
    expect(form.refused(400)).toBe(false);
    expect(form.fate).toBe('refused');
  });
});

test('what the client sends is sent in its own digits', () => {
  const input = '{"id":12345678901234567890,"price":1.0}';
  const call = `{"type":"tool_use","id":"a","name":"buy","input":${input}}`;
  const body = `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[${call}]}],"top_p":0.90}`;
  const form = new NoticeForm([INSTRUCTION], messagesNotices, DIALECTS.anthropic);
  expect(form.bodyOf(body)).toBe(body.replace('"Hi"', '"Hi\\n\\ntold"'));
});

test('several notices each go to their place', () => {
  const messages = [
    { role: 'system', content: 'Be brief.' },
    { role: 'tool', tool_call_id: 'a', content: 'rain' },
  ];
  const form = new NoticeForm([INSTRUCTION, RESULT], chatNotices, DIALECTS.openai);
  const told = messagesIn(form.bodyOf(JSON.stringify({ messages })));
  expect(told.map((message) => (message as { role: string }).role)).toEqual([
    'system',
    'system',
    'tool',
    'user',
  ]);
});

describe('a notice after tool results', () => {
  test.each([
    ['openai', ['tool', 'user']],
    ['generic', ['tool', 'user']],
    ['mistral', ['tool']],
  ] as const)('in the dialect of %s', (dialect, roles) => {
    const body = new NoticeForm([RESULT], chatNotices, DIALECTS[dialect]).bodyOf(RESULTS);
    expect(messagesIn(body).map((message) => (message as { role: string }).role)).toEqual(roles);
    expect(body).toContain('told');
  });
});
