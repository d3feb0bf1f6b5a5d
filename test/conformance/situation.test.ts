import { describe, expect, test } from 'vitest';
import { situationOf } from '../../packages/conformance/src/provider/situation.ts';

const TEXT = 'Kelp says "rock" to the rock, and the rock says nothing. end.';
const HALF = TEXT.slice(0, 30);
const QUESTION = { role: 'user', content: 'Tell me.' };
const parts = (text: string) => [{ type: 'text', text }];

const chat = (...messages: object[]) => situationOf('chat', { messages: [QUESTION, ...messages] }, TEXT);

describe('the scripted model', () => {
  test('answers an original request from the start', () => {
    expect(chat()).toEqual({ said: 0, prefill: undefined });
    expect(situationOf('responses', { input: 'Tell me.' }, TEXT)).toEqual({ said: 0, prefill: undefined });
  });

  test('continues its own beginning on each wire', () => {
    const beginning = { role: 'assistant', content: parts(HALF) };
    const said = { said: HALF.length, prefill: HALF };
    expect(chat({ role: 'assistant', content: HALF })).toEqual(said);
    expect(situationOf('messages', { messages: [QUESTION, beginning] }, TEXT)).toEqual(said);
    expect(situationOf('responses', { input: [QUESTION, beginning] }, TEXT)).toEqual(said);
  });

  test('answers from the start if it never said what is called its beginning', () => {
    expect(chat({ role: 'assistant', content: 'Something else' })).toEqual({
      said: 0,
      prefill: 'Something else',
    });
  });

  test('begins with the words that a user turn quotes', () => {
    const anchor = HALF.slice(-12);
    const asked = `Go on. Begin with ${JSON.stringify(anchor)}, and say nothing to "me".`;
    const turns = [
      { role: 'assistant', content: HALF },
      { role: 'user', content: asked },
    ];
    expect(chat(...turns)).toEqual({ said: HALF.length - anchor.length, prefill: undefined });
  });

  test('continues right behind its words if a user turn quotes none of them', () => {
    const turns = [
      { role: 'assistant', content: HALF },
      { role: 'user', content: 'Go on with "it".' },
    ];
    expect(chat(...turns)).toEqual({ said: HALF.length, prefill: undefined });
  });
});
