import { describe, expect, it } from 'vitest';
import type { DialectName } from '../../../../src/config/dialect-names.ts';
import { historyFor } from '../../../../src/proxy/run/next-attempt/asked-conversation.ts';
import { DIALECTS } from '../../../../src/proxy/wires/dialects/registry.ts';
import { chatRequest } from '../../../simulation/simulate.ts';

const call = (id: string, more: object = {}) => ({
  id,
  type: 'function',
  function: { name: 'tides', arguments: '{}' },
  ...more,
});
const ASKED = { role: 'user', content: 'When is high tide?' };
const conversation = (id: string, more: object = {}) =>
  chatRequest({
    messages: [
      ASKED,
      { role: 'assistant', content: null, tool_calls: [call(id)], ...more },
      { role: 'tool', tool_call_id: id, content: 'At noon.' },
    ],
  });

interface Message {
  readonly role: string;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly { readonly id: string }[];
}
const messagesFor = (dialect: DialectName, request: ReturnType<typeof conversation>) =>
  historyFor(DIALECTS[dialect], request).messages as readonly Message[];

describe('a conversation that several providers take part in', () => {
  it.each<DialectName>(['vllm', 'deepseek', 'generic', 'gemini', 'openrouter'])(
    'goes to %s as it is',
    (dialect) => {
      const request = conversation('call_1', { reasoning_content: 'Hm.' });
      expect(historyFor(DIALECTS[dialect], request)).toBe(request);
    },
  );

  it('has nothing that would have to be changed, and is not', () => {
    const request = conversation('call_1');
    expect(historyFor(DIALECTS.openai, request)).toBe(request);
    const mistrals = conversation('D681PevKs');
    expect(historyFor(DIALECTS.mistral, mistrals)).toBe(mistrals);
    const prompt = { model: 'model', stream: true, prompt: 'When is high tide?' } as const;
    expect(historyFor(DIALECTS.mistral, prompt)).toBe(prompt);
  });

  it.each<DialectName>(['openai', 'azure', 'mistral'])(
    'goes to %s without the reasoning and the signatures of others',
    (dialect) => {
      const request = conversation('D681PevKs', {
        reasoning_content: 'Hm.',
        reasoning_details: [],
        tool_calls: [call('D681PevKs', { extra_content: { google: { thought_signature: 'x' } } })],
      });
      expect(messagesFor(dialect, request)).toEqual(conversation('D681PevKs').messages);
    },
  );

  it('goes to Mistral with ids that it takes, the same for a call and its result, every time', () => {
    const [, answer, result] = messagesFor('mistral', conversation('call_abcdefghijklmnop'));
    expect(result?.tool_call_id).toMatch(/^[a-zA-Z0-9]{9}$/);
    expect(answer?.tool_calls?.[0]?.id).toBe(result?.tool_call_id);
    expect(messagesFor('mistral', conversation('call_abcdefghijklmnop'))[2]).toEqual(result);
    expect(messagesFor('mistral', conversation('call_other'))[2]).not.toEqual(result);
  });

  it('is not expected to be well-formed', () => {
    const request = chatRequest({
      messages: [null, 'text', { role: 'assistant', tool_calls: [null, {}] }, { role: 'tool' }] as never,
    });
    expect(historyFor(DIALECTS.mistral, request)).toBe(request);
  });
});
