import { describe, expect, test } from 'vitest';
import { givenBack } from '../../src/plans/transcript.ts';
import { ran, running, text, transcriptOf } from './saying.ts';

const answerOf = (...said: Parameters<typeof transcriptOf>) => {
  const { text: whole, providerTools } = transcriptOf(...said);
  return givenBack(whole, providerTools);
};
const itemsOf = (id: string) => [{ type: 'mcp_call', id, name: 'create_ticket', output: 'ticket 7' }];

describe('the tools of a provider in a transcript', () => {
  test('are told with their place in the text, their state, and the upstream that ran them', () => {
    const { providerTools } = transcriptOf(
      { kind: 'segment', upstream: 'openai', mode: 'first' },
      text('Let me see.'),
      ran('mcp_1'),
      text(' So.'),
      running('mcp_2', 'close_ticket'),
    );
    expect(providerTools).toEqual([
      {
        id: 'mcp_1',
        name: 'create_ticket',
        state: 'settled',
        offset: 11,
        upstream: 'openai',
        items: itemsOf('mcp_1'),
      },
      { id: 'mcp_2', name: 'close_ticket', state: 'running', offset: 15, upstream: 'openai', items: [] },
    ]);
  });

  test('have their results in any order', () => {
    const [start, end] = ran('mcp_1');
    const { providerTools } = transcriptOf(
      [start, ...ran('mcp_2'), end].filter((delta) => delta !== undefined),
    );
    expect(providerTools.map(({ id, state }) => [id, state])).toEqual([
      ['mcp_1', 'settled'],
      ['mcp_2', 'settled'],
    ]);
  });

  test('are two where a later attempt gives the id of a settled one to another', () => {
    const { providerTools } = transcriptOf(ran('mcp_1'), running('mcp_1'));
    expect(providerTools.map(({ state }) => state)).toEqual(['settled', 'running']);
  });

  test('count for the size of the run with their results', () => {
    expect(transcriptOf(ran('mcp_1')).size).toBe(JSON.stringify(itemsOf('mcp_1')).length);
  });
});

describe('an answer that is given back', () => {
  test('has its tools between the texts that came before and after them', () => {
    expect(
      answerOf(text('Let me see.'), ran('a'), ran('b'), text('Done: '), ran('c'), text('ticket')),
    ).toEqual({
      before: ['Let me see.', itemsOf('a'), itemsOf('b'), 'Done: ', itemsOf('c')],
      tail: 'ticket',
    });
  });

  test('has no text of white space between them, which providers refuse', () => {
    expect(answerOf(text('\n'), ran('a'), text('\n\n'), ran('b'))).toEqual({
      before: [itemsOf('a'), itemsOf('b')],
      tail: '',
    });
  });

  test('is all tail where no tool ran', () => {
    expect(answerOf(text('Kelp holds'))).toEqual({ before: [], tail: 'Kelp holds' });
  });
});
