import { describe, expect, test } from 'vitest';
import {
  anchorOf,
  chooseMode,
  type Mode,
  type ModeFacts,
  marginTokens,
  nudgeText,
  prefixOf,
} from '../../src/plans/continuation.ts';

describe('ways of asking, in their order', () => {
  const facts: ModeFacts = {
    plan: 'R1',
    prefill: true,
    prefillWithTools: true,
    characters: 500,
    hasTools: false,
    onlyReplay: false,
    failed: new Set(),
  };

  /** What is tried when one after the other fails. */
  function tried(changes: Partial<ModeFacts>): Mode[] {
    const modes: Mode[] = [];
    for (;;) {
      const mode = chooseMode({ ...facts, ...changes, failed: new Set(modes) });
      if (!mode) return modes;
      modes.push(mode);
    }
  }

  test.each<[string, Partial<ModeFacts>, Mode[]]>([
    ['prefill, where the target can', {}, ['prefill', 'nudge', 'replay']],
    ['no prefill, where it cannot', { prefill: false }, ['nudge', 'replay']],
    ['prefill, where nobody knows', { prefill: undefined }, ['prefill', 'nudge', 'replay']],
    [
      'no prefill where nobody knows and the prefix is too short to tell',
      { prefill: undefined, characters: 15 },
      ['nudge', 'replay'],
    ],
    [
      'prefill of the least that can tell',
      { prefill: undefined, characters: 16 },
      ['prefill', 'nudge', 'replay'],
    ],
    ['prefill of little, where the target is known to', { characters: 1 }, ['prefill', 'nudge', 'replay']],
    ['prefill with tools, where that is safe', { hasTools: true }, ['prefill', 'nudge', 'replay']],
    [
      'no prefill with tools, where it is not',
      { hasTools: true, prefillWithTools: false },
      ['nudge', 'replay'],
    ],
    ['a nudge first when a call was cut', { plan: 'R3', hasTools: true }, ['nudge', 'prefill', 'replay']],
    ['a nudge only when a call was cut', { plan: 'R3', prefill: false }, ['nudge', 'replay']],
    ['replay alone for structured output', { onlyReplay: true }, ['replay']],
    ['replay alone for a forced tool', { plan: 'R3', onlyReplay: true, hasTools: true }, ['replay']],
  ])('%s', (_, changes, modes) => {
    expect(tried(changes)).toEqual(modes);
  });
});

test.each([
  ['Hello', 'Hello', ''],
  ['Hello ', 'Hello', ' '],
  ['Hello\n\n', 'Hello', '\n\n'],
  ['\n Hello', '\n Hello', ''],
  ['Hello \ud83d', 'Hello', ' \ud83d'],
  ['Hello\ud83d', 'Hello', '\ud83d'],
  ['Hello 🙂', 'Hello 🙂', ''],
  ['Hello\ud800', 'Hello', '\ud800'],
  ['Hello\udbff', 'Hello', '\udbff'],
  ['Hello\udc00', 'Hello\udc00', ''],
  [' \n', '', ' \n'],
  ['', '', ''],
])('of %j the provider is sent %j, and %j is kept', (delivered, sent, trimmed) => {
  expect(prefixOf(delivered)).toEqual({ sent, trimmed });
});

test('what is asked for less where it does not fit grows with what was added', () => {
  expect([0, 8, 4000].map(marginTokens)).toEqual([256, 257, 756]);
});

describe('the words that a model is asked to repeat', () => {
  test.each([
    ['all of a short answer', 'Hello world', 'Hello world'],
    ['without blanks in front', ' Hello world', 'Hello world'],
    ['all of an answer that is just short enough', 'x'.repeat(40), 'x'.repeat(40)],
    [
      'the last ones of a long answer, from the beginning of one',
      'Once upon a time there was a kelp that held fast to its rock.',
      'was a kelp that held fast to its rock.',
    ],
    ['from a word that begins exactly there', `kelp ${'x'.repeat(39)}`, 'x'.repeat(39)],
    [
      'from the last word that begins early enough',
      `kelp ${'x'.repeat(19)} ${'y'.repeat(20)}`,
      'y'.repeat(20),
    ],
    [
      'from within a word where none does',
      `kelp ${'x'.repeat(20)} ${'y'.repeat(19)}`,
      `${'x'.repeat(20)} ${'y'.repeat(19)}`,
    ],
    ['from within where there are no words', '根'.repeat(50), '根'.repeat(40)],
  ])('%s', (_, prefix, anchor) => {
    expect(anchorOf(prefix)).toBe(anchor);
  });

  test('do not begin with half a surrogate pair', () => {
    expect(anchorOf(`a${'🙂'.repeat(20)}b`)).toBe(`${'🙂'.repeat(19)}b`);
  });
});

describe('the nudge', () => {
  const prefix = 'It said "grip the rock';

  test('quotes the last words, and asks for nothing but what follows', () => {
    expect(nudgeText({ prefix, hasTools: false, cutTools: [] })).toBe(
      'My connection dropped and your answer was cut off. ' +
        'Repeat its last words exactly, "It said \\"grip the rock", and go straight on from there. ' +
        'Write nothing else: no preamble, no apology, same language, same formatting.',
    );
  });

  test('reminds of the tools', () => {
    expect(nudgeText({ prefix, hasTools: true, cutTools: [] })).toMatch(
      / If you were about to call a tool, call it now\.$/,
    );
  });

  test('names the call that was cut', () => {
    expect(nudgeText({ prefix, hasTools: true, cutTools: ['now'] })).toContain(
      'Your call to `now` was cut off',
    );
  });

  test('names the calls that were cut', () => {
    expect(nudgeText({ prefix, hasTools: true, cutTools: ['weather', 'now'] })).toMatch(
      / Your call to `weather`, `now` was cut off and did not run: make it again, in full\.$/,
    );
  });
});
