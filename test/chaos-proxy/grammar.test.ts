import { describe, expect, test } from 'vitest';
import type { Place } from '../../src/chaos/fault.ts';
import { InvalidOption, parseFaults, parseSeed, parseShare } from '../../src/chaos/grammar.ts';

const NONE = { cut: [], stall: [], error: [] };
const HALF: Place = { kind: 'percent', percent: 50 };

describe('what is written', () => {
  test.each([
    ['cut', 'reset@40%', { kind: 'cut', cut: 'reset', place: { kind: 'percent', percent: 40 } }],
    ['cut', 'close@end', { kind: 'cut', cut: 'close', place: { kind: 'end' } }],
    ['cut', 'truncate@0', { kind: 'cut', cut: 'truncate', place: { kind: 'characters', characters: 0 } }],
    ['cut', 'reset', { kind: 'cut', cut: 'reset', place: HALF }],
    ['stall', '5s', { kind: 'stall', duration_ms: 5000, place: HALF }],
    ['stall', '250ms@start', { kind: 'stall', duration_ms: 250, place: { kind: 'start' } }],
    ['stall', '60m@tool', { kind: 'stall', duration_ms: 3_600_000, place: { kind: 'tool' } }],
    ['error', 'overloaded@tool', { kind: 'error', error: 'overloaded', place: { kind: 'tool' } }],
    ['error', 'server_error', { kind: 'error', error: 'server_error', place: HALF }],
    ['error', '529', { kind: 'status', status: 529 }],
  ] as const)('--%s %s', (option, given, fault) => {
    expect(parseFaults({ ...NONE, [option]: [given] })).toEqual([fault]);
  });

  test('several faults are all of them, and a share and a seed are numbers', () => {
    expect(parseFaults({ cut: ['reset', 'close'], stall: ['1s'], error: ['500', '503'] })).toHaveLength(5);
    expect([parseShare('5%'), parseShare('100%'), parseShare('0%'), parseShare('0.5%')]).toEqual([
      0.05, 1, 0, 0.005,
    ]);
    expect([parseSeed('0'), parseSeed('4294967295')]).toEqual([0, 4_294_967_295]);
  });
});

describe('what cannot be read is an error that names the option, what it takes and what was given', () => {
  const faults = (option: string, given: string) => () => parseFaults({ ...NONE, [option]: [given] });

  test.each([
    ['cut', 'fin@40%', /^--cut: must be KIND@PLACE, with a KIND of reset, close, truncate .*not "fin@40%"/],
    ['cut', 'reset@', /not "reset@"/],
    ['cut', 'reset@101%', /N% of the answer/],
    ['cut', 'reset@10000001', /up to 10000000/],
    ['cut', 'reset@-1', /N characters/],
    ['cut', '', /not ""/],
    ['stall', '5', /^--stall: must be DURATION@PLACE, with a DURATION like 500ms/],
    ['stall', '0s', /not "0s"/],
    ['stall', '61m', /at most an hour/],
    ['error', '404', /^--error: must be NAME@PLACE, .* or a status of 429, 500, 503, 529/],
    ['error', '529@start', /without a place/],
    ['error', 'overloaded@middle', /not "overloaded@middle"/],
  ])('--%s %j', (option, given, message) => {
    expect(faults(option, given)).toThrow(InvalidOption);
    expect(faults(option, given)).toThrow(message);
  });

  test('more faults than the limit', () => {
    expect(() => parseFaults({ ...NONE, cut: Array(65).fill('reset') })).toThrow(/at most 64 faults/);
  });

  test.each(['5', '101%', '-1%', 'half'])('--share %s', (given) => {
    expect(() => parseShare(given)).toThrow(/^--share: must be a percentage like 5%/);
  });

  test.each(['-1', '1.5', '4294967296', 'seven'])('--seed %s', (given) => {
    expect(() => parseSeed(given)).toThrow(/^--seed: must be an integer from 0 to 4294967295/);
  });
});
