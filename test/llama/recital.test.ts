import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { streamedAnswer } from './answer.ts';
import { charactersOf, cutsOf } from './cuts.ts';
import { LlamaServer } from './llama-server.ts';
import { chatPrompt, completionPrompt } from './prompts.ts';
import { TEXTS, type TextName } from './texts.ts';

/** Verifies the model's behaviour without Holdfast, because Holdfast's tests rely on it. */
describe.skipIf(inject('llamaServer') === '')('the model that recites', () => {
  let server: LlamaServer;

  beforeAll(async () => {
    server = await LlamaServer.start(inject('llamaServer'));
  });
  afterAll(() => server.close());

  const ask = (path: '/chat/completions' | '/completions', body: object) =>
    streamedAnswer(`http://127.0.0.1:${server.port}/v1`, path, body);

  test.each(Object.keys(TEXTS) as TextName[])('says %s as it is in the prompt', async (name) => {
    const text = TEXTS[name];
    const chat = await ask('/chat/completions', { messages: [{ role: 'user', content: chatPrompt(text) }] });
    expect(chat).toMatchObject({ text, finish: ['stop'], done: true });
    expect(chat.usage.completion).toBe(Buffer.byteLength(text) + 1);
    const completion = await ask('/completions', { prompt: completionPrompt(text), max_tokens: 2000 });
    expect(completion).toMatchObject({ text, finish: ['stop'], done: true });
  });

  test.each(Object.keys(TEXTS) as TextName[])(
    'continues %s from any prefix exactly where it ends, and the server adds and removes nothing',
    async (name) => {
      const text = TEXTS[name];
      const characters = charactersOf(text);
      const wrong = [];
      for (const cut of cutsOf(text)) {
        const prefix = characters.slice(0, cut).join('');
        const { text: rest } = await ask('/chat/completions', {
          messages: [
            { role: 'user', content: chatPrompt(text) },
            { role: 'assistant', content: prefix },
          ],
          continue_final_message: true,
          add_generation_prompt: false,
        });
        if (prefix + rest !== text) wrong.push({ prefix, rest });
      }
      expect(wrong).toEqual([]);
    },
  );
});
