import { globSync } from 'node:fs';
import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node';
import { EXPECTED_SKIPS } from './expected-skips.ts';
import { TIERS } from './tiers.ts';

/** How many tests to name for each reason. */
const NAMED_MAX = 3;

/**
 * At the end of a run, reports the skipped tests with their reasons, and the tiers left out. In `npm run test:all` with
 * `CI` set, a skip that test/expected-skips.ts doesn't list fails the run.
 */
export default class SkipReport implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const vitest = this.#vitest;
    // A run that selects tests by name, or watches files, leaves tests out on purpose.
    if (!vitest || vitest.config.testNamePattern || vitest.config.watch) return;
    const skipped = Map.groupBy(
      modules.flatMap((module) => [...module.children.allTests('skipped')]),
      reasonOf,
    );
    for (const [reason, tests] of skipped) {
      vitest.logger.log(`${tests.length} skipped: ${reason}`);
      for (const test of tests.slice(0, NAMED_MAX)) vitest.logger.log(`  ${nameOf(test)}`);
      if (tests.length > NAMED_MAX) vitest.logger.log(`  … and ${tests.length - NAMED_MAX} more`);
    }
    const unexpected = [...skipped.keys()].filter(
      (reason) => !EXPECTED_SKIPS.some((each) => each.test(reason)),
    );
    if (unexpected.length > 0 && process.env.CI && vitest.config.env.HOLDFAST_TIER === 'all') {
      vitest.logger.error(`Tests were skipped that should have run:\n${unexpected.join('\n')}`);
      process.exitCode = 1;
    }
    for (const tier of leftOut(vitest)) {
      const files = globSync(TIERS[tier].include, { exclude: TIERS[tier].exclude });
      vitest.logger.log(
        `${files.length} files of the tier "${tier}" were left out: npm run test:all runs them`,
      );
    }
  }
}

/** The tiers that `--project` didn't select. */
function leftOut({ config, projects }: Vitest): ('unit' | 'integration' | 'system')[] {
  if (config.project.length === 0) return [];
  const chosen = new Set(projects.map(({ name }) => name));
  return (['unit', 'integration', 'system'] as const).filter((tier) => !chosen.has(tier));
}

function reasonOf(test: TestCase): string {
  const result = test.result();
  return (
    test.meta().missing ?? (result.state === 'skipped' ? result.note : undefined) ?? 'for no stated reason'
  );
}

const nameOf = (test: TestCase): string => `${test.module.relativeModuleId}: ${test.fullName}`;
