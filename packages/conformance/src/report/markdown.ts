import { isAcceptable, VERDICTS, type Verdict } from '../judge.ts';
import type { Result } from '../run.ts';
import type { Conditions } from './json.ts';
import { summaryOf } from './summary.ts';

export function markdownReport(conditions: Conditions, results: readonly Result[]): string {
  const { cases, verdicts, failures } = summaryOf(results);
  const counts = Object.entries(verdicts).map(([verdict, number]) => {
    const mark = isAcceptable(verdict as Verdict) ? '' : '**';
    return `| ${mark}${verdict}${mark} | ${number} | ${VERDICTS[verdict as Verdict]} |`;
  });
  const rows = results.map(({ asked, verdict, requests }) => `| ${asked.id} | ${verdict} | ${requests} |`);
  const limits = Object.entries(conditions).map(([name, value]) => `\`${name}\` ${value}`);
  return [
    '# Conformance',
    '',
    `${cases} cases, ${failures} failures. ${limits.join(', ')}.`,
    '',
    '| verdict | cases | what the application saw |',
    '|---|---|---|',
    ...counts,
    '',
    '| case | verdict | requests |',
    '|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}
