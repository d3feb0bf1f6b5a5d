import { describe, expect, test } from 'vitest';
import { Conversation, expectWhole } from './conversation.ts';
import { FIXTURES } from './fixture-registry.ts';
import type { Fixture } from './fixtures/fixture.ts';

const ALL = Object.entries(FIXTURES).map(([name, fixture]) => ({ name, fixture }));

describe('cut after any event, the answer is whole', () => {
  test.each(ALL)('$name: by a reset', async ({ fixture }) => {
    await expectRecoveries(fixture, 'reset');
  });

  test.each(ALL)('$name: by its own error', async ({ fixture }) => {
    await expectRecoveries(fixture, 'error_own');
  });

  async function expectRecoveries(fixture: Fixture, kind: 'reset' | 'error_own'): Promise<void> {
    const conversation = await Conversation.begin(fixture);
    const places = Array.from({ length: conversation.places + 1 }, (_, event) => event);
    const answers = await Promise.all(
      places.map((event) => conversation.ask(`cut after ${event}`, { faults: [{ kind, at: { event } }] })),
    );
    const { refusesAtFirst } = fixture;
    const recovered = kind === 'error_own' && refusesAtFirst ? answers.slice(1) : answers;
    if (recovered !== answers) expect(answers[0]?.status).toBe(refusesAtFirst);
    for (const answer of recovered) {
      expectWhole(answer, fixture);
      expect(answer.requests.length).toBeGreaterThan(1);
    }
  }
});
