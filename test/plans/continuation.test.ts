import { describe, expect, test } from 'vitest';
import { marginTokens, nudgeText } from '../../src/plans/continuation.ts';
import { chooseMode, type Mode, type ModeFacts, prefixOf } from '../../src/plans/seam/mode.ts';

describe('ways of asking, in their order', () => {
  const facts: ModeFacts = {
    plan: 'R1',
    prefill: 'exact',
    prefillWithTools: true,
    characters: 500,
    hasTools: false,
    callsComeNext: true,
    onlyReplay: false,
    nudgeIsCached: false,
    strict: false,
    failed: new Set(),
  };

  /** The modes in the order in which a run tries them if each fails. */
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
    ['no prefill, where it cannot', { prefill: 'new_turn' }, ['nudge', 'replay']],
    ['prefill, where nothing is known', { prefill: undefined }, ['prefill', 'nudge', 'replay']],
    [
      'no prefill where nothing is known and the prefix is too short to tell',
      { prefill: undefined, characters: 15 },
      ['nudge', 'replay'],
    ],
    [
      'prefill of the least that can tell',
      { prefill: undefined, characters: 16 },
      ['prefill', 'nudge', 'replay'],
    ],
    [
      'a nudge first, where a prefill would lose the cache',
      { nudgeIsCached: true },
      ['nudge', 'prefill', 'replay'],
    ],
    ['prefill of an echo, too', { prefill: 'echo', characters: 1 }, ['prefill', 'nudge', 'replay']],
    [
      'no prefill where nothing is known of it and every seam must prove itself',
      { prefill: undefined, strict: true },
      ['nudge', 'replay'],
    ],
    ['prefill of little, where the target is known to', { characters: 1 }, ['prefill', 'nudge', 'replay']],
    ['prefill with tools, where that is safe', { hasTools: true }, ['prefill', 'nudge', 'replay']],
    [
      'no prefill with tools, where it is not',
      { hasTools: true, prefillWithTools: false },
      ['nudge', 'replay'],
    ],
    [
      'prefill when a call was cut that comes next, where the target is known to continue exactly',
      { plan: 'R3', hasTools: true },
      ['prefill', 'nudge', 'replay'],
    ],
    [
      'a nudge first when a call was cut that text came after',
      { plan: 'R3', hasTools: true, callsComeNext: false },
      ['nudge', 'prefill', 'replay'],
    ],
    [
      'a nudge first when a call was cut behind no text',
      { plan: 'R3', hasTools: true, characters: 0 },
      ['nudge', 'prefill', 'replay'],
    ],
    [
      'a nudge first when a call was cut, where the prefix comes again',
      { plan: 'R3', hasTools: true, prefill: 'echo' },
      ['nudge', 'prefill', 'replay'],
    ],
    [
      'a nudge first when a call was cut, where nothing is known',
      { plan: 'R3', hasTools: true, prefill: undefined },
      ['nudge', 'prefill', 'replay'],
    ],
    [
      'a nudge only when a call was cut, where tools are not safe with prefill',
      { plan: 'R3', hasTools: true, prefillWithTools: false },
      ['nudge', 'replay'],
    ],
    ['a nudge only when a call was cut', { plan: 'R3', prefill: 'new_turn' }, ['nudge', 'replay']],
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
  expect(prefixOf(delivered, false)).toEqual({ sent, trimmed });
});

test.each([
  ['Hello ', 'Hello ', ''],
  ['def f(x):\n    ', 'def f(x):\n    ', ''],
  ['Hello \ud83d', 'Hello ', '\ud83d'],
])('of %j a provider that keeps white space is sent %j, and %j is kept', (delivered, sent, trimmed) => {
  expect(prefixOf(delivered, true)).toEqual({ sent, trimmed });
});

test('what is asked for less where it does not fit grows with what was added', () => {
  expect([0, 8, 4000].map(marginTokens)).toEqual([256, 257, 756]);
});

describe('the nudge', () => {
  const delivered = 'It said "grip the rock';
  const asked = { delivered, hasTools: false, cutTools: [], insists: false };

  test('quotes the last words, and asks for nothing but what follows', () => {
    expect(nudgeText(asked)).toBe(
      'My connection dropped and your answer was cut off. ' +
        'Repeat its last words exactly, "It said \\"grip the rock", and go straight on from there. ' +
        'Write nothing else: no preamble, no apology, same language, same formatting.',
    );
  });

  test('is worded more strongly where it was not followed', () => {
    const text = nudgeText({ ...asked, insists: true });
    expect(text).toContain('The first characters of your reply must be its last words');
    expect(text).toContain('"It said \\"grip the rock"');
  });

  test('says how a line break is quoted', () => {
    expect(nudgeText({ ...asked, delivered: 'Items:\n- one' })).toContain(
      '"Items:\\n- one", and go straight on from there. Write nothing else: no preamble, no apology, same language, same formatting. Where the words have \\n, write a line break.',
    );
  });

  test('reminds of the tools', () => {
    expect(nudgeText({ ...asked, hasTools: true, cutTools: [] })).toMatch(
      / If you were about to call a tool, call it now\.$/,
    );
  });

  test('names the call that was cut', () => {
    expect(nudgeText({ ...asked, hasTools: true, cutTools: ['now'] })).toContain(
      'Your call to `now` was cut off',
    );
  });

  test('names the calls that were cut', () => {
    expect(nudgeText({ ...asked, hasTools: true, cutTools: ['weather', 'now'] })).toMatch(
      / Your call to `weather`, `now` was cut off and did not run: make it again, in full\.$/,
    );
  });
});
