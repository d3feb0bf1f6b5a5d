import { describe, test } from 'vitest';
import { CASES, caseShare, PROPERTY_MAX_MS } from '../../cases.ts';
import { expectShares } from '../../shares.ts';
import { chatCases, onCompletions, outcomesOf, SEED } from '../../simulation/cases.ts';
import { onMessages } from '../../simulation/messages-cases.ts';
import { onResponses } from '../../simulation/responses-cases.ts';

const FEWER_CASES = caseShare(5);

describe('whatever is cut, wherever, by whatever, however it continues', { timeout: PROPERTY_MAX_MS }, () => {
  test(`the invariants hold (${CASES} cases, seed ${SEED})`, async () => {
    const outcomes = await outcomesOf(chatCases, CASES);
    expectShares(outcomes, CASES, { recovered: 1 / 5, salvaged: 1 / 40, failed: 1 / 400 });
  });

  test(`the invariants hold on /v1/completions (${FEWER_CASES} cases, seed ${SEED})`, async () => {
    const outcomes = await outcomesOf(onCompletions(chatCases), FEWER_CASES);
    expectShares(outcomes, FEWER_CASES, { recovered: 1 / 5, failed: 1 / 400 });
  });

  test(`the invariants hold on /v1/messages (${FEWER_CASES} cases, seed ${SEED})`, async () => {
    const outcomes = await outcomesOf(onMessages(chatCases), FEWER_CASES);
    expectShares(outcomes, FEWER_CASES, { recovered: 1 / 5, salvaged: 1 / 40, failed: 1 / 400 });
  });

  test(`the invariants hold on /v1/responses (${FEWER_CASES} cases, seed ${SEED})`, async () => {
    const outcomes = await outcomesOf(onResponses(chatCases), FEWER_CASES);
    expectShares(outcomes, FEWER_CASES, { recovered: 1 / 5, salvaged: 1 / 40, failed: 1 / 400 });
  });
});
