import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type CachedProgram, cachedDirectory } from '../cached-program.ts';

const NAME = '@durable-streams/server-conformance-tests';
const VERSION = '0.3.6';
const SUITE_LIMIT_MS = 300_000;

const RUNNER = `import { runConformanceTests } from '${NAME}';
runConformanceTests({ baseUrl: process.env.CONFORMANCE_TEST_URL });
`;

const run = promisify(execFile);

/** The directory of the suite and its own vitest, or the reason why this machine doesn't have it. */
export const conformanceSuite = (): Promise<CachedProgram> =>
  cachedDirectory('holdfast-durable-streams', VERSION, NAME, async (directory) => {
    writeFileSync(join(directory, 'package.json'), '{"private":true,"type":"module"}');
    const words = ['install', '--no-audit', '--no-fund', '--save-exact', `${NAME}@${VERSION}`];
    await run('npm', words, { cwd: directory });
    writeFileSync(join(directory, 'suite.test.js'), RUNNER);
    // By default, Vitest excludes node_modules, which contains the cache.
    writeFileSync(
      join(directory, 'vitest.config.js'),
      'export default { test: { exclude: [], testTimeout: 30_000 } };\n',
    );
  });

export interface CaseResult {
  readonly title: string;
  readonly isPassed: boolean;
  readonly message: string;
}

/** Runs the suite's cases with these titles on the streams at `url`. */
export async function runSuite(
  path: string,
  url: string,
  titles: readonly string[],
): Promise<readonly CaseResult[]> {
  const report = join(mkdtempSync(join(tmpdir(), 'holdfast-durable-streams-')), 'report.json');
  try {
    const pattern = titles.map((title) => title.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|');
    const words = ['run', '--root', path, '--reporter', 'json', '--outputFile', report, '-t', pattern];
    await run(process.execPath, [join(path, 'node_modules/vitest/vitest.mjs'), ...words], {
      cwd: path,
      env: { PATH: process.env.PATH, CONFORMANCE_TEST_URL: url },
      timeout: SUITE_LIMIT_MS,
      // The report contains the failures.
    }).catch(() => {});
    const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report;
    return testResults
      .flatMap(({ assertionResults }) => assertionResults)
      .filter(({ status }) => status === 'passed' || status === 'failed')
      .map(({ title, status, failureMessages }) => ({
        title,
        isPassed: status === 'passed',
        message: failureMessages.join('\n').slice(0, 500),
      }));
  } finally {
    rmSync(join(report, '..'), { recursive: true, force: true });
  }
}

interface Report {
  readonly testResults: readonly {
    readonly assertionResults: readonly {
      readonly title: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}
