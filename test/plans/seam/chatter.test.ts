import { describe, expect, test } from 'vitest';
import { isMeta, mayBecomeChatter, preambleOf } from '../../../src/plans/seam/plausibility.ts';

const PREAMBLES = [
  'Sure, here is the rest:\n',
  'Sure! Here’s the continuation of my answer:\n',
  'Certainly, continuing from where I left off:\n',
  'Of course! I will pick up where it broke off.\n',
  'Of course.\n',
  'Okay\n',
  'Ok:\n',
  'OK, going on: ',
  'Apologies for the interruption.\n',
  'Continuing: ',
  'Continued:\n',
  'Picking up where I left off:\n',
  '[continued]\n',
  '[Continuing]\n',
  "Here's the rest:\n",
  'Here is the continuation:\n',
];

describe('a preamble', () => {
  test.each(PREAMBLES)('%j', (preamble) => {
    expect(preambleOf(`${preamble}The holdfast grips.`)).toBe(preamble);
  });

  test('is one on its own where the rest is a call', () => {
    expect(preambleOf('Sure, here is the rest:\n', true)).toBe('Sure, here is the rest:\n');
    expect(preambleOf('Of course, there are exceptions:\n', true)).toBe('');
  });

  test('may be as long as a line', () => {
    const line = (length: number) => `${'Continuing'.padEnd(length - 1, ' on')}\n`;
    expect(preambleOf(`${line(120)}x`)).toBe(line(120));
    expect(preambleOf(`${line(121)}x`)).toBe('');
  });

  test.each([
    ['is all that was said', 'Sure, here is the rest:\n'],
    ['has no end', 'Sure, here is the rest of it'],
    ['says something', 'Of course, there are exceptions:\n- sand'],
    ['is too long', `Continuing ${'and on '.repeat(20)}:\nx`],
    ['is within a sentence', 'sure, here is the rest:\nx'],
    ['is part of a word', 'Surely the rest:\nx'],
    ['is a time of day', 'Continuing at 10:30\nx'],
    ['comes later', 'The holdfast grips. Sure, here is the rest:\nx'],
    ['is nothing', ''],
  ])('is none that %s', (_, head) => {
    expect(preambleOf(head)).toBe('');
  });
});

describe('an answer to the nudge', () => {
  test.each([
    "I'm sorry, but I cannot see the answer.",
    'I’m sorry, I have no connection.',
    'I am sorry, but I was not cut off.',
    "I don't see a previous message.",
    'I do not see any answer of mine.',
    'There is no previous answer.',
    'As an AI language model',
  ])('%j', (head) => {
    expect(isMeta(head)).toBe(true);
  });

  test.each(["I'm sorry for her.", 'as an AI researcher', 'As an aid to memory', 'I see.', ''])(
    'is none: %j',
    (head) => {
      expect(isMeta(head)).toBe(false);
    },
  );
});

describe('more text could still make chatter of', () => {
  const beginnings = (text: string) => Array.from(text, (_, index) => text.slice(0, index + 1));

  test.each(PREAMBLES)('every beginning of %j', (preamble) => {
    for (const head of beginnings(preamble)) expect(mayBecomeChatter(head), head).toBe(true);
  });

  test.each(["I'm sorry, but I", "I don't see", 'There is no previous', 'As an AI'])(
    'every beginning of %j',
    (opener) => {
      for (const head of beginnings(opener)) expect(mayBecomeChatter(head), head).toBe(true);
    },
  );

  test.each([
    ['other words', 'Kelp'],
    ['what has turned out to be some', 'Sure, here is the rest:\nT'],
    ['what has turned out to be none', 'Sure, at 10:3'],
    ['a line that is too long', `Sure ${'and '.repeat(29)}`],
    ['a refusal that is one already', 'As an AI,'],
  ])('not: %s', (_, head) => {
    expect(mayBecomeChatter(head)).toBe(false);
  });
});
