/**
 * `npm run conformance` runs the conformance suite twice against a direct connection, Holdfast and other gateways,
 * compares the runs, and writes docs/conformance.md. `npm run conformance -- Holdfast direct` runs only these two and
 * prints the results.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../bench/processes.ts';
import type { GatewayUnderTest } from './gateway.ts';
import { DIRECT } from './gateways/direct.ts';
import { HOLDFAST } from './gateways/holdfast.ts';
import { LITELLM } from './gateways/litellm.ts';
import { PORTKEY } from './gateways/portkey.ts';
import { type Report, type Tested, writePage } from './page.ts';

const SUITE = join(import.meta.dirname, '../../packages/conformance/src/main.ts');
const GATEWAYS = [DIRECT, HOLDFAST, PORTKEY, LITELLM];
const RUNS = 2;
/** Exit statuses of a suite that ran to the end. */
const RAN = [0, 1];

const names = process.argv.slice(2);
const unknown = names.find((name) => !GATEWAYS.some((gateway) => gateway.name === name));
if (unknown !== undefined)
  throw new Error(`${unknown}: give ${GATEWAYS.map(({ name }) => name).join(', ')}, or nothing for all`);
const chosen = names.length === 0 ? GATEWAYS : GATEWAYS.filter(({ name }) => names.includes(name));

const directory = mkdtempSync(join(tmpdir(), 'holdfast-conformance-'));
// In parallel, because they spend most of their time waiting for clocks.
const all = await Promise.all(chosen.map(testRepeatedly));
if (chosen.length === GATEWAYS.length) writePage(all);
rmSync(directory, { recursive: true });

async function testRepeatedly(gateway: GatewayUnderTest): Promise<Tested> {
  const reports: Report[] = [];
  for (let run = 1; run <= RUNS; run++) reports.push(await test(gateway, run));
  const [report, ...others] = reports as [Report, ...Report[]];
  const verdictIn = ({ results }: Report, id: string) => results.find((result) => result.id === id)?.verdict;
  const differing = report.results.flatMap(({ id, verdict }) => {
    const later = others.map((other) => verdictIn(other, id)).find((each) => each !== verdict);
    return later === undefined ? [] : [{ id, first: verdict, later }];
  });
  console.log(`${gateway.name}: ${JSON.stringify(report.verdicts)}`);
  for (const { id, first, later } of differing) console.log(`  ${id}: ${first}, then ${later}`);
  return { gateway, report, differing, runs: RUNS };
}

/** Runs the suite once against a newly started gateway. */
async function test(gateway: GatewayUnderTest, run: number): Promise<Report> {
  const place = join(directory, `${gateway.name}-${run}`);
  mkdirSync(place);
  const provider_port = await freePort();
  const started = await gateway.start(provider_port, place);
  const [json, log] = [join(place, 'report.json'), join(place, 'suite.log')];
  const output = openSync(log, 'w');
  try {
    const words = [SUITE, '--upstream-port', String(provider_port), '--json', json, ...started.words];
    const suite = spawn(process.execPath, words, { stdio: ['ignore', output, output] });
    const [status] = await once(suite, 'exit');
    if (!RAN.includes(Number(status))) throw new Error(`${gateway.name}: ${readFileSync(log, 'utf8')}`);
    return JSON.parse(readFileSync(json, 'utf8')) as Report;
  } finally {
    closeSync(output);
    await started.stop();
  }
}
