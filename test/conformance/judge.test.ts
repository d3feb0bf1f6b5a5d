import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type End, isAcceptable, judge, type Shown, VERDICTS } from '../../packages/conformance/src/judge.ts';
import { CASES, seedOr } from '../cases.ts';

const TEXT =
  'Kelp grips the rock with an organ that is called a holdfast, and the surge passes through. end.';
const CALL = { name: 'look_up', arguments: '{"city":"Ås","days":3}' };
const NEXT = { name: 'send', arguments: '{"to":"crew"}' };
const SAID = { text: TEXT, calls: [] };
const CALLED = { text: TEXT, calls: [CALL] };
const STOP: End = { kind: 'completed', finish: 'stop' };
const CALLS: End = { kind: 'completed', finish: 'tool_calls' };
const OPEN: End = { kind: 'completed', finish: undefined };
const ERROR: End = { kind: 'error', name: 'APIError' };

const text = (shown: string, end: End = STOP) => judge(SAID, { text: shown, calls: [] }, end, 1);
const calls = (shown: Shown['calls'], end: End = CALLS) =>
  judge(CALLED, { text: TEXT, calls: shown }, end, 1);

describe('the judge', () => {
  test.each([
    ['the whole answer', text(TEXT), 'exact'],
    ['the whole answer with its call', calls([CALL]), 'exact'],
    [
      'a call whose JSON has other spaces and another order',
      calls([{ ...CALL, arguments: '{ "days": 3, "city": "Ås" }' }]),
      'exact',
    ],
    ['a part of the answer and an end', text(TEXT.slice(0, 20)), 'silent_truncation'],
    ['a part of the answer and no reason for its end', text(TEXT.slice(0, 20), OPEN), 'silent_truncation'],
    ['nothing', text('', OPEN), 'silent_truncation'],
    [
      'a part of the answer that says it is one',
      text(TEXT.slice(0, 20), { kind: 'completed', finish: 'length' }),
      'honest_error',
    ],
    ['a part of the answer and an error', text(TEXT.slice(0, 20), ERROR), 'honest_error'],
    ['the whole answer and no reason for its end', text(TEXT, OPEN), 'wrong_end'],
    ['a call and an end that denies it', calls([CALL], STOP), 'wrong_end'],
    ['the text without its call', calls([]), 'silent_truncation'],
    ['the answer from its start, in its middle', text(TEXT.slice(0, 20) + TEXT), 'duplicate'],
    ['the answer three times', text(TEXT + TEXT + TEXT), 'duplicate'],
    [
      'the answer again after words of the gateway',
      text(`${TEXT.slice(0, 60)} [asking again] ${TEXT}`),
      'duplicate',
    ],
    ['one character twice', text(TEXT.slice(0, 20) + TEXT.slice(19)), 'duplicate'],
    ['the answer again, and an error', text(TEXT.slice(0, 20) + TEXT.slice(0, 15), ERROR), 'duplicate'],
    ['one character too few', text(TEXT.slice(0, 20) + TEXT.slice(21)), 'lost_text'],
    ['words that the model did not say', text(`${TEXT.slice(0, 20)} [interrupted]`), 'altered_text'],
    ['half a call and an error', calls([{ ...CALL, arguments: '{"city' }], ERROR), 'honest_error'],
    ['half a call and an end', calls([{ ...CALL, arguments: '{"city' }]), 'broken_tool_call'],
    [
      'half a call and no reason for the end',
      calls([{ ...CALL, arguments: '{"city' }], OPEN),
      'broken_tool_call',
    ],
    ['half a call, then the whole', calls([{ ...CALL, arguments: '{"city' }, CALL]), 'broken_tool_call'],
    ['a call with other arguments', calls([{ ...CALL, arguments: '{"city":"Ås"}' }]), 'broken_tool_call'],
    [
      'arguments that were joined twice',
      calls([{ ...CALL, arguments: CALL.arguments + CALL.arguments }]),
      'broken_tool_call',
    ],
    ['a call of another tool', calls([NEXT]), 'broken_tool_call'],
    ['a call twice', calls([CALL, CALL]), 'duplicate'],
    ['a call twice, and an error', calls([CALL, CALL], ERROR), 'duplicate'],
    ['silence', text(TEXT.slice(0, 20), { kind: 'hang' }), 'hang'],
    ['a silence that clients do not wait for', text(TEXT.slice(0, 20), { kind: 'idle' }), 'idle_timeout'],
  ])('convicts or acquits %s', (_name, verdict, expected) => {
    expect(verdict).toBe(expected);
  });

  test('takes whole calls with a proper end for what they are, but not without that end', () => {
    const both = { text: TEXT, calls: [CALL, NEXT] };
    const shown = { text: TEXT, calls: [CALL] };
    expect(judge(both, shown, CALLS, 1)).toBe('settled_calls_only');
    expect(judge(both, shown, OPEN, 1)).toBe('silent_truncation');
    expect(judge(both, { text: TEXT, calls: [CALL, NEXT] }, CALLS, 1)).toBe('exact');
  });

  test('calls an endpoint unsupported only if the provider was never asked', () => {
    const missing: End = { kind: 'error', status: 404, name: 'NotFoundError' };
    expect(judge(SAID, { text: '', calls: [] }, missing, 0)).toBe('unsupported');
    expect(judge(SAID, { text: '', calls: [] }, missing, 1)).toBe('honest_error');
    expect(judge(SAID, { text: '', calls: [] }, ERROR, 0)).toBe('honest_error');
  });

  test('lets no joined text pass but the right one', () => {
    const whole = fc.array(fc.constantFrom('a', 'ab', '\n', '🌊', 'b '), { minLength: 5, maxLength: 40 });
    const property = fc.property(whole, fc.nat(60), fc.nat(60), (parts, kept, from) => {
      // The last words of the text occur only once, as in the suite's texts.
      const said = { text: `${parts.join('')}end.`, calls: [] };
      const shown = said.text.slice(0, kept) + said.text.slice(from);
      const verdict = judge(said, { text: shown, calls: [] }, STOP, 1);
      if (shown === said.text) return verdict === 'exact';
      if (said.text.startsWith(shown)) return verdict === 'silent_truncation';
      return shown.length > said.text.length ? verdict === 'duplicate' : !isAcceptable(verdict);
    });
    fc.assert(property, { numRuns: CASES, seed: seedOr(7) });
  });

  test('has four verdicts that mislead no application', () => {
    const acceptable = Object.keys(VERDICTS).filter((verdict) =>
      isAcceptable(verdict as keyof typeof VERDICTS),
    );
    expect(acceptable).toEqual(['exact', 'settled_calls_only', 'honest_error', 'unsupported']);
  });
});
