import { describe, expect, test } from 'vitest';
import { chatForm } from '../../../../src/proxy/wires/chunks/chat-wire.ts';
import { fits, usageChunk } from '../../../../src/proxy/wires/chunks/chunk-envelope.ts';
import type { ChatChunk, ChunkEvent } from '../../../../src/proxy/wires/chunks/chunk-reader.ts';

const chunkOf = (delta: unknown, more: object = {}, choice: object = {}): ChatChunk => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'gpt-a',
  system_fingerprint: 'fp_1',
  choices: [{ index: 0, delta, finish_reason: null, ...choice }],
  ...more,
});

const eventOf = (chunk: ChatChunk, role = false): ChunkEvent => ({
  kind: 'answer',
  payload: JSON.stringify(chunk),
  chunk,
  deltas: [],
  role,
  manyChoices: false,
});

const IDENTITY = {
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'gpt-a',
  system_fingerprint: 'fp_1',
};
const OTHER = { id: 'chatcmpl-2', created: 2, model: 'llama', provider: 'other' };

const envelope = chatForm.envelopeOf(chunkOf({ content: 'Hi' }));
const parsed = (payload: string): unknown => JSON.parse(payload);

describe('a chunk of the same answer', () => {
  test('passes as the bytes that came', () => {
    const event = eventOf(chunkOf({ content: ' there' }, { obfuscation: 'x' }));
    expect(fits(envelope, event.chunk)).toBe(true);
    expect(chatForm.payloadOf(envelope, event, false)).toBe(event.payload);
  });

  test('passes with its role where the role belongs', () => {
    const event = eventOf(chunkOf({ role: 'assistant', content: '' }), true);
    expect(chatForm.payloadOf(envelope, event, true)).toBe(event.payload);
  });

  test('loses a role that comes again', () => {
    const event = eventOf(chunkOf({ role: 'assistant', content: 'Hi' }), true);
    expect(parsed(chatForm.payloadOf(envelope, event, false))).toEqual(chunkOf({ content: 'Hi' }));
  });

  test('gets the role where it lacks one', () => {
    const event = eventOf(chunkOf({ content: 'Hi' }));
    expect(parsed(chatForm.payloadOf(envelope, event, true))).toEqual(
      chunkOf({ role: 'assistant', content: 'Hi' }),
    );
  });
});

describe('a chunk of another attempt', () => {
  test('takes on the identity of the first, and keeps what else it has', () => {
    const event = eventOf(
      chunkOf({ content: ' there' }, { ...OTHER, system_fingerprint: 'fp_2' }, { logprobs: null }),
    );
    expect(fits(envelope, event.chunk)).toBe(false);
    expect(parsed(chatForm.payloadOf(envelope, event, false))).toEqual({
      ...IDENTITY,
      provider: 'other',
      choices: [{ index: 0, delta: { content: ' there' }, finish_reason: null, logprobs: null }],
    });
  });

  test('loses an error that is null, which some clients die of', () => {
    const event = eventOf(chunkOf({ content: 'Hi' }, { error: null }));
    expect(parsed(chatForm.payloadOf(envelope, event, false))).toEqual(chunkOf({ content: 'Hi' }));
  });

  test('without a choice, too', () => {
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
    const event = eventOf({ ...OTHER, choices: [], usage });
    expect(parsed(chatForm.payloadOf(envelope, event, false))).toEqual({
      ...IDENTITY,
      provider: 'other',
      choices: [],
      usage,
    });
  });
});

describe('the identity', () => {
  test('is everything at the top of the first chunk but what it said', () => {
    const first = chunkOf({ content: 'Hi' }, { provider: 'p', usage: null, error: null, obfuscation: 'x' });
    expect(parsed(chatForm.emptyChunk(chatForm.envelopeOf(first)))).toEqual({
      ...IDENTITY,
      provider: 'p',
      choices: [{ index: 0, delta: {}, finish_reason: null }],
    });
  });

  test('is a chunk’s even if the provider calls it something else', () => {
    const first = chunkOf({ content: 'Hi' }, { object: 'chat.completion' });
    expect(parsed(chatForm.emptyChunk(chatForm.envelopeOf(first)))).toMatchObject({
      object: 'chat.completion.chunk',
    });
  });
});

describe('chunks of our own', () => {
  const choice = (payload: string): unknown => (parsed(payload) as { choices: unknown[] }).choices[0];

  test('text, refusal and reasoning, joined', () => {
    const payload = chatForm.textChunk(
      envelope,
      [
        { kind: 'reasoning', text: 'Hm' },
        { kind: 'text', text: 'So' },
        { kind: 'text', text: ' be it' },
        { kind: 'refusal', text: 'No' },
        { kind: 'usage', usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } },
      ],
      false,
    );
    expect(parsed(payload)).toEqual({
      ...IDENTITY,
      choices: [
        {
          index: 0,
          delta: { reasoning_content: 'Hm', content: 'So be it', refusal: 'No' },
          finish_reason: null,
        },
      ],
    });
  });

  test('reasoning goes where the answering provider put it', () => {
    const thinking = chatForm.envelopeOf(chunkOf({ role: 'assistant' }), chunkOf({ reasoning: 'Hm' }));
    const payload = chatForm.textChunk(thinking, [{ kind: 'reasoning', text: 'So' }], false);
    expect(choice(payload)).toMatchObject({ delta: { reasoning: 'So' } });
  });

  test('the first one brings the role', () => {
    const payload = chatForm.textChunk(envelope, [{ kind: 'text', text: 'So' }], true);
    expect(choice(payload)).toMatchObject({ delta: { role: 'assistant', content: 'So' } });
  });

  test('a whole tool call, with what else belongs to it', () => {
    const start = { id: 'a', name: 'now', extra: { extra_content: { google: 1 } } };
    const fragment = { position: 2, start, arguments: '{}', legacy: false, deltas: [] };
    expect(choice(chatForm.toolChunk(envelope, fragment, false))).toEqual({
      index: 0,
      delta: {
        tool_calls: [
          {
            index: 2,
            id: 'a',
            type: 'function',
            extra_content: { google: 1 },
            function: { name: 'now', arguments: '{}' },
          },
        ],
      },
      finish_reason: null,
    });
  });

  test('a fragment of a tool call has neither id nor name', () => {
    const fragment = { position: 2, arguments: '{', legacy: false, deltas: [] };
    expect(choice(chatForm.toolChunk(envelope, fragment, true))).toMatchObject({
      delta: { role: 'assistant', tool_calls: [{ index: 2, function: { arguments: '{' } }] },
    });
  });

  test('a legacy call, and a fragment of one', () => {
    const start = { id: '', name: 'now', extra: {} };
    const whole = { position: 0, start, arguments: '{}', legacy: true, deltas: [] };
    expect(choice(chatForm.toolChunk(envelope, whole, false))).toMatchObject({
      delta: { function_call: { name: 'now', arguments: '{}' } },
    });
    const { start: _start, ...fragment } = whole;
    expect(choice(chatForm.toolChunk(envelope, fragment, false))).toEqual({
      index: 0,
      delta: { function_call: { arguments: '{}' } },
      finish_reason: null,
    });
  });

  test('the end', () => {
    expect(choice(chatForm.finishChunk(envelope, 'stop', false))).toEqual({
      index: 0,
      delta: {},
      finish_reason: 'stop',
    });
    expect(choice(chatForm.finishChunk(envelope, 'stop', true))).toMatchObject({
      delta: { role: 'assistant' },
    });
  });

  test('the usage', () => {
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
    expect(parsed(usageChunk(envelope, usage))).toEqual({ ...IDENTITY, choices: [], usage });
  });

  test('nothing, with a word of ours beside it', () => {
    const holdfast = { type: 'Recovered' };
    expect(parsed(chatForm.emptyChunk(envelope, holdfast))).toEqual({ ...chunkOf({}), holdfast });
  });
});

describe('the provider’s own end', () => {
  const ours = { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 };
  const theirs = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
  const finish = (more: object = {}) =>
    chunkOf({ content: 'last words' }, { ...OTHER, ...more }, { finish_reason: 'stop' });

  test('keeps nothing of what it said', () => {
    expect(parsed(chatForm.finishOf(envelope, finish(), false, undefined))).toEqual({
      ...IDENTITY,
      provider: 'other',
      choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
    });
  });

  test('brings the role of an answer that never began', () => {
    expect(parsed(chatForm.finishOf(envelope, finish(), true, undefined))).toMatchObject({
      choices: [{ delta: { role: 'assistant', content: '' }, finish_reason: 'stop' }],
    });
  });

  test.each<[string, object, typeof ours | undefined, unknown]>([
    ['is replaced by ours', { usage: theirs }, ours, ours],
    ['stands where we have none', { usage: theirs }, undefined, theirs],
    ['is not put where there was none', { usage: null }, ours, null],
  ])('its usage report %s', (_, more, usage, reported) => {
    expect(parsed(chatForm.finishOf(envelope, finish(more), false, usage))).toMatchObject({
      usage: reported,
    });
  });

  test('keeps what is beside the words, such as the signature of a thought', () => {
    const delta = {
      role: 'assistant',
      content: 'last words',
      reasoning: 'Hm',
      extra_content: { google: { thought_signature: 'CsYB' } },
    };
    const last = chunkOf(delta, OTHER, { finish_reason: 'stop' });
    expect(parsed(chatForm.finishOf(envelope, last, false, undefined))).toMatchObject({
      choices: [{ delta: { extra_content: delta.extra_content }, finish_reason: 'stop' }],
    });
    expect(chatForm.finishOf(envelope, last, false, undefined)).not.toMatch(/last words|Hm|role/);
  });

  test('has its report within the choice (Kimi) replaced by ours, in its own place', () => {
    const last = chunkOf({}, OTHER, { finish_reason: 'stop', usage: theirs });
    const rebuilt = parsed(chatForm.finishOf(envelope, last, false, ours));
    expect(rebuilt).toMatchObject({ usage: ours });
    expect(rebuilt).toMatchObject({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
    expect(JSON.stringify(rebuilt)).not.toContain(JSON.stringify(theirs));
    expect(parsed(chatForm.finishOf(envelope, last, false, undefined))).toMatchObject({
      choices: [{ usage: theirs }],
    });
  });

  test('may have no choices, or none that are', () => {
    expect(parsed(chatForm.finishOf(envelope, { ...OTHER, usage: theirs }, false, ours))).toMatchObject({
      choices: [],
      usage: ours,
    });
    expect(parsed(chatForm.finishOf(envelope, { ...OTHER, choices: ['x'] }, false, ours))).toMatchObject({
      choices: ['x'],
    });
  });
});
