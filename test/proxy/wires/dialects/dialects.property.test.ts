import { describe, expect, test } from 'vitest';
import { caseShare, PROPERTY_MAX_MS } from '../../../cases.ts';
import { expectShares } from '../../../shares.ts';
import { chatCases, onCompletions, outcomesOf, SEED } from '../../../simulation/cases.ts';
import { spokenAs } from '../../../simulation/dialect-cases.ts';
import type { Simulation } from '../../../simulation/simulate.ts';
import { FIXTURES } from './fixture-registry.ts';
import type { Fixture } from './fixtures/fixture.ts';

const CHAT_CASES = caseShare(16);
const COMPLETION_CASES = caseShare(50);
const ALL = Object.entries(FIXTURES).map(([name, fixture]) => ({ name, fixture }));

/** If a provider signs its calls, all calls that reach the client are signed. */
const isSigned = (fixture: Fixture) => (run: Simulation) => {
  const { signed, toolCalls } = run.stream;
  if (fixture.signsCalls) for (const { id } of toolCalls) expect(signed).toContain(id);
};

describe('whatever is cut, wherever, by whatever, however it continues', { timeout: PROPERTY_MAX_MS }, () => {
  test.each(ALL)(`$name: the invariants hold (${CHAT_CASES} cases, seed ${SEED})`, async ({ fixture }) => {
    const outcomes = await outcomesOf(spokenAs(fixture, chatCases), CHAT_CASES, isSigned(fixture));
    expectShares(outcomes, CHAT_CASES, { recovered: 1 / 5, salvaged: 1 / 40, failed: 1 / 400 });
  });

  test.each(ALL.filter(({ fixture }) => fixture.hasCompletions))(
    `$name: the invariants hold on /v1/completions (${COMPLETION_CASES} cases, seed ${SEED})`,
    async ({ fixture }) => {
      const outcomes = await outcomesOf(onCompletions(spokenAs(fixture, chatCases)), COMPLETION_CASES);
      expectShares(outcomes, COMPLETION_CASES, { recovered: 1 / 5 });
    },
  );
});
