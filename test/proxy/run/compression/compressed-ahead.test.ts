import { expect, test } from 'vitest';
import type { PromptSize } from '../../../../src/plans/tokens.ts';
import { isTooLarge } from '../../../../src/proxy/run/compression/compressed-ahead.ts';
import type { Run } from '../../../../src/proxy/run/context/run.ts';

const measured = (): PromptSize => expect.fail('it was measured');
const facts = { promptSize: measured };
const runOf = (characters: number, compression: object | undefined) =>
  ({ body: 'x'.repeat(characters), ...(compression && { compression }) }) as unknown as Run;

test.each([
  ['whose route compresses nothing', runOf(10_000_000, undefined)],
  ['whose route compresses what was refused', runOf(10_000_000, { keep_messages: 8 })],
  ['that is small', runOf(4000, { keep_messages: 8, request_tokens_max: 1000 })],
])('a request %s is not even measured', (_, run) => {
  expect(isTooLarge({ run, facts })).toBe(false);
});
