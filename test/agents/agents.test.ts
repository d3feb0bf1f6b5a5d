import { beforeAll, describe, expect, test } from 'vitest';
import { AGENTS } from './agent.ts';
import { programsOf } from './programs.ts';
import { runTrial, verdictOf, whyNotAlone } from './run-trial.ts';
import type { Trial } from './trial.ts';

/* Runs real agents through some of the troubles that `npm run agents` covers in full. */

/** The npm packages are 1.6 GB in total. */
const INSTALL_MAX_MS = 900_000;
const TRIAL_MAX_MS = 200_000;

const TROUBLES = ['three resets in the text', 'reset in the arguments', 'stall in the arguments'];

describe.each(AGENTS)('$name', (agent) => {
  let programs = '';
  let missing: string | undefined;
  let uncut: Trial;

  beforeAll(async () => {
    missing = await whyNotAlone();
    if (missing !== undefined) return;
    try {
      programs = await programsOf(agent);
    } catch (error) {
      missing = `the agent cannot be installed: ${error instanceof Error ? error.message : String(error)}`;
      return;
    }
    uncut = await runTrial(agent, '-', 'holdfast', programs);
  }, INSTALL_MAX_MS + TRIAL_MAX_MS);

  test('does its task', ({ skip }) => {
    skip(missing !== undefined, missing);
    expect(uncut.faults).toEqual([]);
  });

  test('its user does not notice a replica that is killed behind a sidecar', {
    timeout: TRIAL_MAX_MS,
  }, async ({ skip }) => {
    skip(missing !== undefined, missing);
    const trial = await runTrial(agent, 'replica killed in the text', 'sidecar', programs);
    expect(verdictOf(trial, uncut)).toBe('right');
    expect(trial.paid).toBe(uncut.paid + 1);
  });

  test.for(TROUBLES)(
    'nothing that its user can see changes: %s',
    { timeout: TRIAL_MAX_MS },
    async (trouble, { skip }) => {
      skip(missing !== undefined, missing);
      const trial = await runTrial(agent, trouble, 'holdfast', programs);
      expect(verdictOf(trial, uncut)).toBe('right');
      expect(trial.paid).toBeGreaterThan(uncut.paid);
    },
  );
});
