import { describe, expect, test } from 'vitest';
import { StopMatcher } from '../../src/plans/stop-conditions.ts';
import { pieces } from './seam/joining.ts';

/** What passes through of a continuation in these chunks. */
function through(stops: readonly string[], delivered: string, chunks: readonly string[]) {
  const matcher = new StopMatcher(stops, delivered);
  let emitted = '';
  for (const chunk of chunks) {
    const { emit, stopped } = matcher.push(chunk);
    emitted += emit;
    if (stopped) return { emitted, stopped };
  }
  return { emitted: emitted + matcher.end(), stopped: false };
}

describe('a stop sequence', () => {
  test.each<[string, string[], string, string, { emitted: string; stopped: boolean }]>([
    ['across the seam stops', ['END'], 'It is E', 'ND of it', { emitted: '', stopped: true }],
    [
      'that began two characters before',
      ['\n\nUser:'],
      'Yes.\n\n',
      'User: no',
      { emitted: '', stopped: true },
    ],
    [
      'of which all but the end was delivered stops',
      ['END'],
      'It is EN',
      'D.',
      { emitted: '', stopped: true },
    ],
    ['of two characters stops', ['##'], 'It is #', '#', { emitted: '', stopped: true }],
    [
      'that ended before the seam has been passed, however long the others are',
      ['END', 'END OF ALL'],
      'The END.',
      'x',
      { emitted: 'x', stopped: false },
    ],
    ['that is longer than what was delivered', ['END'], 'E', 'ND', { emitted: '', stopped: true }],
    ['that only might have begun', ['END'], 'It is E', 'Nough', { emitted: 'Nough', stopped: false }],
    ['that was still open at the end', ['END'], 'It is E', 'N', { emitted: 'N', stopped: false }],
    [
      'that begins after the seam is the provider’s',
      ['END'],
      'It is ',
      'END',
      { emitted: 'END', stopped: false },
    ],
    [
      'that ended before the seam has been passed',
      ['END'],
      'It is END',
      'x',
      { emitted: 'x', stopped: false },
    ],
    ['of one character cannot span', ['.'], 'It is', '. x', { emitted: '. x', stopped: false }],
    ['is one of several', ['ENDING', 'END'], 'It is E', 'ND.', { emitted: '', stopped: true }],
    [
      'of several that all might have begun',
      ['ENDING', 'ENTER'],
      'It is E',
      'ND.',
      { emitted: 'ND.', stopped: false },
    ],
    ['that begins again within itself', ['aab'], 'xaa', 'ab', { emitted: '', stopped: true }],
    ['in an answer of which nothing was delivered', ['END'], '', 'END', { emitted: 'END', stopped: false }],
    ['that nobody asked for', [], 'It is E', 'ND', { emitted: 'ND', stopped: false }],
  ])('%s', (_, stops, delivered, says, expected) => {
    for (const chunks of [pieces(says, [1]), pieces(says, [3]), [says]]) {
      expect(through(stops, delivered, chunks)).toEqual(expected);
    }
  });
});

test('text passes at once where no stop sequence can have begun', () => {
  const matcher = new StopMatcher(['END'], 'It is ');
  expect(matcher.push('so')).toEqual({ emit: 'so', stopped: false });
  expect(matcher.end()).toBe('');
});
