import { describe, expect, test } from 'vitest';
import { speakable } from '../../../src/lib/text.ts';
import { anchorOf } from '../../../src/plans/seam/anchor.ts';

const rows = (count: number) =>
  Array.from({ length: count }, (_, row) => `{"id": ${row}, "name": "kelp"}\n`).join('');

describe('the anchor of a nudge', () => {
  test.each<[string, string, string]>([
    ['is the whole of a short answer', 'Hold fast', 'Hold fast'],
    ['has the white space at its end', 'def f(x):\n    ', 'def f(x):\n    '],
    ['has none at its beginning', '\n\n  Hold', 'Hold'],
    [
      'begins with the sentence',
      'The kelp was torn away by the surge. Only its holdfast still gripped',
      'Only its holdfast still gripped',
    ],
    [
      'begins with the line',
      '- amber and bridge\n- candle, desert and engine\n- forest, garden, harb',
      '- candle, desert and engine\n- forest, garden, harb',
    ],
    [
      'begins with a word where a sentence is too long',
      `${'endless '.repeat(3)}and so it went on through many a clause without any end of a sentence in sight for very long`,
      'sentence in sight for very long',
    ],
    ['says no half of a surrogate pair', 'Hold fast \ud83d', 'Hold fast '],
  ])('%s', (_, delivered, anchor) => {
    expect(anchorOf(delivered)).toBe(anchor);
  });

  test('is extended until it occurs only once', () => {
    const delivered = `${rows(3)}{"id": 3, "name": "kelp"}\n`;
    const anchor = anchorOf(delivered);
    expect(delivered.endsWith(anchor)).toBe(true);
    expect(delivered.indexOf(anchor)).toBe(delivered.length - anchor.length);
    expect(anchor).toBe('{"id": 3, "name": "kelp"}\n');
  });

  test('of rows that are all the same is as long as an anchor may be', () => {
    const anchor = anchorOf('{"name": "x", "value": 0}\n'.repeat(100));
    expect(anchor.length).toBeGreaterThan(500);
    expect(anchor.trimEnd().length).toBeLessThanOrEqual(600);
  });

  test('splits no surrogate pair where there are no words', () => {
    const anchor = anchorOf('🙂🙃'.repeat(5) + '🇨🇭'.repeat(9));
    expect(anchor.isWellFormed()).toBe(true);
  });
});

test('half a surrogate pair is not said', () => {
  expect(speakable('a\ud83d')).toBe('a');
  expect(speakable('a🙂')).toBe('a🙂');
  expect(speakable('')).toBe('');
});
