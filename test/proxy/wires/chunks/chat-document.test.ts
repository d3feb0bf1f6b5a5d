import { describe, expect, test } from 'vitest';
import { chatWire } from '../../../../src/proxy/wires/chunks/chat-wire.ts';
import { completionsWire } from '../../../../src/proxy/wires/chunks/completions-wire.ts';
import { documentOf } from '../document-of.ts';

const chunk = (delta: object, more: object = {}, top: object = {}) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  ...top,
  choices: [{ index: 0, delta, finish_reason: null, ...more }],
});
const end = (finish_reason = 'stop', delta = {}, more = {}) => chunk(delta, { finish_reason, ...more });

/** The first choice, with its message apart from the rest. */
function choiceOf(...chunks: readonly object[]) {
  const document = documentOf(chatWire, [...chunks, '[DONE]']) as
    | { choices: [{ message: Record<string, unknown>; [field: string]: unknown }] }
    | undefined;
  return document?.choices[0];
}
const messageOf = (...chunks: readonly object[]) => choiceOf(...chunks)?.message;

describe('a message', () => {
  test('has no content where it has calls only, and no calls where there are none', () => {
    const call = { id: 'a', type: 'function', function: { name: 'now', arguments: '{}' } };
    expect(
      messageOf(chunk({ role: 'assistant', tool_calls: [{ index: 0, ...call }] }), end('tool_calls')),
    ).toEqual({
      role: 'assistant',
      content: null,
      tool_calls: [call],
    });
    const legacy = { name: 'now', arguments: '{}' };
    expect(messageOf(chunk({ content: '', function_call: legacy }), end('function_call'))).toEqual({
      role: 'assistant',
      content: null,
      function_call: legacy,
    });
    expect(messageOf(chunk({ content: '', tool_calls: [] }), end())).toEqual({
      role: 'assistant',
      content: '',
    });
  });

  test('has its calls in their order, with what their provider adds to them', () => {
    const signed = { extra_content: { google: { thought_signature: 'xyz' } } };
    const { tool_calls } =
      messageOf(
        chunk({
          tool_calls: [{ index: 1, id: 'b', type: 'function', function: { name: 'two', arguments: '{"' } }],
        }),
        chunk({
          tool_calls: [
            { index: 0, id: 'a', type: 'function', ...signed, function: { name: 'one', arguments: '{}' } },
          ],
        }),
        chunk({ tool_calls: [{ index: 1, function: { arguments: 'b":1}' } }] }),
        end('tool_calls'),
      ) ?? {};
    expect(tool_calls).toEqual([
      { id: 'a', type: 'function', ...signed, function: { name: 'one', arguments: '{}' } },
      { id: 'b', type: 'function', function: { name: 'two', arguments: '{"b":1}' } },
    ]);
  });

  test('has the input of a custom call', () => {
    const call = { index: 0, id: 'a', type: 'custom', custom: { name: 'run', input: 'ls' } };
    expect(
      messageOf(
        chunk({ tool_calls: [call] }),
        chunk({ tool_calls: [{ index: 0, custom: { input: ' -l' } }] }),
        end('tool_calls'),
      )?.tool_calls,
    ).toEqual([{ id: 'a', type: 'custom', custom: { name: 'run', input: 'ls -l' } }]);
  });

  test('with half a call is none', () => {
    const call = { index: 0, id: 'a', type: 'function', function: { name: 'now', arguments: '{"a' } };
    expect(choiceOf(chunk({ tool_calls: [call] }), end('tool_calls'))).toBeUndefined();
  });

  test('has a refusal, or null where its provider sends that', () => {
    const nothing = { role: 'assistant', content: '', refusal: null };
    expect(messageOf(chunk(nothing), chunk({ content: 'Yes.' }), end())).toEqual({
      role: 'assistant',
      content: 'Yes.',
      refusal: null,
    });
    expect(messageOf(chunk(nothing), chunk({ refusal: 'I ' }), chunk({ refusal: 'won’t.' }), end())).toEqual({
      role: 'assistant',
      content: null,
      refusal: 'I won’t.',
    });
  });

  test('has thoughts under the name that their provider has for them', () => {
    for (const field of ['reasoning_content', 'reasoning', 'thinking_of_somebody']) {
      const said = [chunk({ role: 'assistant', content: null, [field]: 'Hm, ' }), chunk({ [field]: 'yes.' })];
      expect(messageOf(...said, chunk({ content: 'Yes.', [field]: null }), end())).toEqual({
        role: 'assistant',
        content: 'Yes.',
        [field]: 'Hm, yes.',
      });
    }
  });

  test('has details of thoughts as OpenRouter tells them without a stream', () => {
    const piece = (text: string, more: object = {}) => ({ type: 'reasoning.text', index: 0, text, ...more });
    const secret = { type: 'reasoning.encrypted', index: 1, data: 'abc', id: 'rs_1' };
    const other = { type: 'reasoning.summary', index: 2, summary: 'All ' };
    const message = messageOf(
      chunk({ reasoning_details: [piece('Hm, ', { format: 'x' })] }),
      chunk({ reasoning_details: [piece('yes.', { signature: 'signed' })] }),
      chunk({ reasoning_details: [secret] }),
      chunk({ reasoning_details: [secret] }),
      chunk({ reasoning_details: [other] }),
      chunk({ reasoning_details: [{ ...other, summary: 'in all.' }] }),
      end(),
    );
    expect(message?.reasoning_details).toEqual([
      { type: 'reasoning.text', index: 0, text: 'Hm, yes.', format: 'x', signature: 'signed' },
      secret,
      secret,
      { ...other, summary: 'All in all.' },
    ]);
  });

  test('has all annotations', () => {
    const annotation = (url: string) => ({ type: 'url_citation', url_citation: { url } });
    const message = messageOf(
      chunk({ content: 'A', annotations: [annotation('a')] }),
      chunk({ annotations: [annotation('b')] }),
      end(),
    );
    expect(message?.annotations).toEqual([annotation('a'), annotation('b')]);
  });

  test('has parts where deltas bring parts, as those of Mistral do', () => {
    const thinking = (text: string) => ({ type: 'thinking', thinking: [{ type: 'text', text }] });
    expect(
      messageOf(
        chunk({ role: 'assistant', content: '' }),
        chunk({ content: [thinking('Hm, ')] }),
        chunk({ content: [thinking('yes.')] }),
        chunk({ content: 'Y' }),
        chunk({ content: 'es.' }),
        end(),
      )?.content,
    ).toEqual([thinking('Hm, yes.'), { type: 'text', text: 'Yes.' }]);
    const reference = { type: 'reference', reference_ids: [1] };
    expect(
      messageOf(
        chunk({ content: 'See ' }),
        chunk({ content: [reference, { type: 'text', text: 'it.' }] }),
        end(),
      )?.content,
    ).toEqual([{ type: 'text', text: 'See ' }, reference, { type: 'text', text: 'it.' }]);
  });
});

describe('the rest of the document', () => {
  test('is what was at the top of the chunks and of the choice, as it was said last', () => {
    const top = { system_fingerprint: 'fp', service_tier: null, provider: 'Somebody', obfuscation: 'x' };
    const first = { ...chunk({ content: 'A' }, { logprobs: null, stop_reason: null }), ...top };
    const last = {
      ...end('stop', {}, { native_finish_reason: 'end' }),
      service_tier: 'default',
      usage: null,
    };
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
    expect(documentOf(chatWire, [first, last, { ...chunk({}), choices: [], usage }, '[DONE]'])).toEqual({
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'A' },
          logprobs: null,
          stop_reason: null,
          native_finish_reason: 'end',
          finish_reason: 'stop',
        },
      ],
      usage,
      system_fingerprint: 'fp',
      service_tier: 'default',
      provider: 'Somebody',
    });
  });

  test('keeps what Azure says of its filters', () => {
    const safe = { hate: { filtered: false, severity: 'safe' } };
    const prompt = { ...chunk({}), choices: [], prompt_filter_results: [{ prompt_index: 0 }] };
    const said = chunk({ content: 'A' }, { content_filter_results: safe });
    const document = documentOf(chatWire, [prompt, said, end('stop', {}, { content_filter_results: {} })]);
    expect(document).toMatchObject({
      prompt_filter_results: [{ prompt_index: 0 }],
      choices: [{ content_filter_results: safe }],
    });
  });

  test('has the usage that Kimi reports within the choice', () => {
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
    const document = documentOf(chatWire, [chunk({ content: 'A' }), end('stop', {}, { usage })]);
    expect(document).toMatchObject({ usage });
    expect(document?.choices).toEqual([
      { index: 0, message: { role: 'assistant', content: 'A' }, finish_reason: 'stop' },
    ]);
  });

  test('has no usage where none was reported', () => {
    expect(documentOf(chatWire, [chunk({ content: 'A' }, {}, { usage: null }), end()])).not.toHaveProperty(
      'usage',
    );
  });

  test('is not ended anew by a finish reason that says nothing', () => {
    expect(choiceOf(chunk({ content: 'A' }, { finish_reason: '' }), end(), end(''))?.finish_reason).toBe(
      'stop',
    );
  });
});

describe('what is asked for as a stream', () => {
  const { streamFields } = chatWire.document;

  test('is asked for its usage, with the other options of the client', () => {
    expect(streamFields({})).toEqual({ stream: true, stream_options: { include_usage: true } });
    expect(streamFields({ stream_options: null })).toMatchObject({ stream_options: { include_usage: true } });
    const stream_options = { include_usage: false, include_obfuscation: false };
    expect(streamFields({ stream_options })).toMatchObject({
      stream_options: { include_usage: true, include_obfuscation: false },
    });
  });

  test('is not what has options that are none', () => {
    expect(streamFields({ stream_options: 'usage' })).toBeUndefined();
  });
});

describe('a body in place of a stream', () => {
  const message = { role: 'assistant', content: 'A' };

  test('is an answer if all of its choices have ended as they should', () => {
    const { isAnswer } = chatWire.document;
    expect(isAnswer({ choices: [{ message, finish_reason: 'stop' }] })).toBe(true);
    expect(isAnswer({ choices: [{ message, finish_reason: 'insufficient_system_resource' }] })).toBe(false);
    expect(isAnswer({ choices: [{ text: 'A', finish_reason: 'stop' }] })).toBe(false);
    expect(completionsWire.document.isAnswer({ choices: [{ text: 'A', finish_reason: 'stop' }] })).toBe(true);
  });
});

test('what is kept besides text and calls is counted', () => {
  const fold = chatWire.document.fold();
  fold.add(JSON.stringify(chunk({ content: 'A'.repeat(1000) })));
  const before = fold.extra_bytes;
  expect(before).toBeLessThan(200);
  fold.add(JSON.stringify(chunk({ image: ['B'.repeat(500)] })));
  fold.add(JSON.stringify(chunk({ image: ['C'.repeat(500)] })));
  fold.add(JSON.stringify(chunk({}, { prompt_logprobs: 'D'.repeat(500) })));
  fold.add(JSON.stringify(chunk({}, { prompt_logprobs: 'D'.repeat(500) })));
  expect(fold.extra_bytes - before).toBeGreaterThanOrEqual(1500);
  expect(fold.extra_bytes - before).toBeLessThan(1600);
});
