import { describe, expect, test } from 'vitest';
import { estimatedPromptTokens } from '../../../../src/plans/tokens.ts';
import { promptSize } from '../../../../src/proxy/wires/common/prompt-size.ts';

const PICTURE = `data:image/png;base64,${'A'.repeat(400_000)}`;
const TOOLS = [{ type: 'function', function: { name: 'tides', parameters: { type: 'object' } } }];

describe('what a model reads of a request', () => {
  test('is the text of its messages, whatever form it has', () => {
    const messages = [
      'Be brief.',
      { role: 'user', content: 'Tides?' },
      { role: 'user', content: [{ type: 'text', text: 'Tides?', cache_control: { type: 'ephemeral' } }] },
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'x'.repeat(9_000) },
      null,
      { role: 'assistant' },
    ];
    expect(promptSize(messages).message_characters).toEqual([9, 6, 6, 0, 0, 0]);
  });

  test('is what was called, and with what', () => {
    const tool_calls = [{ id: 'call_1', function: { name: 'tides', arguments: '{"city":"Brest"}' } }];
    const [said = 0] = promptSize([{ role: 'assistant', content: null, tool_calls }]).message_characters;
    expect(said).toBeGreaterThan('tides{"city":"Brest"}'.length);
  });

  test('has the definitions of its tools', () => {
    const without = estimatedPromptTokens(promptSize(['Tides?'], undefined, null));
    const { length } = JSON.stringify(TOOLS);
    expect(promptSize(['Tides?'], TOOLS, undefined).tool_characters).toBe(length);
    expect(estimatedPromptTokens(promptSize(['Tides?'], TOOLS))).toBe(without + Math.ceil(length / 4));
  });

  test.each<[string, object, number]>([
    ['image_url', { image_url: { url: PICTURE } }, 765],
    ['image_url', { image_url: { url: PICTURE, detail: 'low' } }, 85],
    ['input_image', { image_url: PICTURE, detail: 'low' }, 85],
    ['input_image', { image_url: PICTURE }, 765],
    ['image', { source: { type: 'base64', media_type: 'image/png', data: 'A'.repeat(9_000) } }, 765],
    ['image', { source: { type: 'url', url: 'https://example.com/a.png' } }, 765],
    ['document', { source: { type: 'text', media_type: 'text/plain', data: 'Tides' } }, 0],
  ])('of an %s %#: not the characters it is encoded in', (type, part, media_tokens) => {
    const size = promptSize([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'See?' },
          { type, ...part },
        ],
      },
    ]);
    expect(size.media_tokens).toBe(media_tokens);
    expect(size.message_characters[0]).toBeLessThan(60);
  });

  test('of the image within the result of a tool is no text either', () => {
    const result = {
      type: 'tool_result',
      tool_use_id: 't',
      content: [{ type: 'image', source: { data: PICTURE } }],
    };
    expect(promptSize([{ role: 'user', content: [result] }]).media_tokens).toBe(765);
  });
});
