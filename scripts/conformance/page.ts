import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { VERDICTS, type Verdict } from '../../packages/conformance/src/judge.ts';
import type { GatewayUnderTest } from './gateway.ts';

/** The part of the suite's report that the page needs. */
export interface Report {
  readonly suite: string;
  readonly seed: number;
  readonly hang_ms: number;
  readonly idle_ms: number;
  readonly silence_ms: number;
  readonly prefill: string;
  readonly cases: number;
  readonly verdicts: Partial<Record<Verdict, number>>;
  readonly results: readonly { readonly id: string; readonly verdict: Verdict }[];
}

export interface Differing {
  readonly id: string;
  readonly first: Verdict;
  readonly later: Verdict;
}

export interface Tested {
  readonly gateway: GatewayUnderTest;
  /** The report of the first run. */
  readonly report: Report;
  readonly runs: number;
  /** Cases with another verdict in a later run. */
  readonly differing: readonly Differing[];
}

const ROOT = join(import.meta.dirname, '../..');
const PAGE = join(ROOT, 'docs/conformance.md');
const RESULTS = join(import.meta.dirname, 'results.json');
const [BEGIN, END] = ['<!-- begin: results -->', '<!-- end: results -->'];

/** Replaces the text between the markers, and stores every verdict beside this script. */
export function writePage(all: readonly Tested[]): void {
  const page = readFileSync(PAGE, 'utf8');
  const [before, rest] = page.split(BEGIN);
  const after = rest?.split(END)[1];
  if (after === undefined) throw new Error(`${PAGE} lacks ${BEGIN} or ${END}`);
  const tables = [conditions(all), versions(all), counts(all), groups(all), stability(all)];
  writeFileSync(PAGE, `${before}${BEGIN}\n${tables.join('\n\n')}\n${END}${after}`);
  const verdicts = all.map(({ gateway: { name, version }, report }) => ({
    name,
    version,
    verdicts: Object.fromEntries(report.results.map(({ id, verdict }) => [id, verdict])),
  }));
  writeFileSync(RESULTS, `${JSON.stringify(verdicts, null, 2)}\n`);
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

function conditions([first]: readonly Tested[]): string {
  if (!first) throw new Error('nothing was tested');
  const { suite, seed, hang_ms, idle_ms, silence_ms, prefill, cases } = first.report;
  const seconds = (ms: number) => `${ms / 1000} s`;
  return [
    `${suite}, seed ${seed}: ${cases} cases. An answer that shows nothing new for ${seconds(hang_ms)} hangs. The provider's silences take`,
    `${seconds(silence_ms)}, and clients wait ${seconds(idle_ms)} for a byte. A model that gets the beginning of its answer ${prefill} it.`,
  ].join('\n');
}

function versions(all: readonly Tested[]): string {
  const rows = all.map(({ gateway: { name, version, configuration } }) => [name, version, configuration]);
  return table(['gateway', 'version', 'configuration'], rows);
}

function counts(all: readonly Tested[]): string {
  const occurring = Object.keys(VERDICTS).filter((verdict) =>
    all.some(({ report }) => report.verdicts[verdict as Verdict] !== undefined),
  );
  const rows = occurring.map((verdict) => [
    `\`${verdict}\``,
    ...all.map(({ report }) => String(report.verdicts[verdict as Verdict] ?? 0)),
  ]);
  return table(['verdict', ...all.map(({ gateway }) => gateway.name)], rows);
}

/** Groups cases that differ only in their wire or state. */
function groups(all: readonly Tested[]): string {
  const ids = new Set(all.flatMap(({ report }) => report.results.map(({ id }) => groupOf(id))));
  const rows = [...ids]
    .sort((one, other) => one.localeCompare(other))
    .map((group) => [
      group,
      ...all.map(({ report }) => {
        const verdicts = report.results
          .filter(({ id }) => groupOf(id) === group)
          .map(({ verdict }) => verdict);
        const kinds = Object.keys(VERDICTS).map((verdict) => [
          verdict,
          verdicts.filter((each) => each === verdict).length,
        ]);
        return kinds.flatMap(([verdict, count]) => (count === 0 ? [] : [`${count} ${verdict}`])).join(', ');
      }),
    ]);
  return table(['cases', ...all.map(({ gateway }) => gateway.name)], rows);
}

function groupOf(id: string): string {
  const [, manner, , trouble, always] = id.split('/');
  return `${manner}: ${trouble}${always === undefined ? '' : ', each attempt'}`;
}

function stability(all: readonly Tested[]): string {
  const times = `Each gateway was tested ${all[0]?.runs} times`;
  const differing = all.flatMap(({ gateway, differing: cases }) =>
    cases.map(({ id, first, later }) => `- ${gateway.name}, \`${id}\`: ${first}, then ${later}`),
  );
  if (differing.length === 0) return `${times}, with the same verdict for each case.`;
  return `${times}. The verdicts above are those of the first run. These differed:\n\n${differing.join('\n')}`;
}
