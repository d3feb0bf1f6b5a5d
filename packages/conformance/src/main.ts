#!/usr/bin/env node
import { exec } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { allCases, chosen } from './cases.ts';
import type { Gateway } from './client/client.ts';
import { isAcceptable } from './judge.ts';
import { HELP, type Options, optionsOf, UsageError } from './options.ts';
import { Provider } from './provider/provider.ts';
import { badge } from './report/badge.ts';
import { type Conditions, jsonReport } from './report/json.ts';
import { markdownReport } from './report/markdown.ts';
import { summaryOf } from './report/summary.ts';
import { type Result, runCases } from './run.ts';

const MISLED = 1;
const COULD_NOT_RUN = 2;

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  readonly name: string;
  readonly version: string;
};

const say = (line: string): boolean => process.stdout.write(`${line}\n`);

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`holdfast-conformance: ${(error as Error).message}\n`);
  process.exitCode = COULD_NOT_RUN;
}

async function main(words: readonly string[]): Promise<number> {
  const options = optionsOf(words);
  if (!options) {
    process.stdout.write(HELP);
    return 0;
  }
  const applicable = { http2: options.tls !== undefined, kill: options.kill_command !== undefined };
  const cases = chosen(allCases(applicable), options.only);
  if (cases.length === 0)
    throw new UsageError(`--only ${options.only.join(' ')}: no case has it; see --list`);
  if (options.list) {
    for (const { id } of cases) say(id);
    return 0;
  }
  const { seed, listen: host, upstream_port: port, silence_ms, tls, prefill } = options;
  const provider = await Provider.start({ cases, seed, host, port, silence_ms, tls, prefill });
  try {
    const protocol = tls ? 'https' : 'http';
    say(`the provider listens on ${protocol}://${host}:${provider.port}/v1`);
    const { concurrency } = options;
    const gateway = gatewayAt(options.base_url, options);
    const run = { cases, seed, provider, gateway, clocks: options, concurrency, death: deathOf(options) };
    const results = await runCases(run, (result) => print(result, options.verbose));
    return report(results, options);
  } finally {
    await provider.close();
  }
}

function gatewayAt(root: string, { api_key, models, headers }: Options): Gateway {
  return { root, api_key, models, headers };
}

function deathOf(options: Options) {
  const { kill_command: command, second_base_url: second } = options;
  if (command === undefined) return undefined;
  const kill = async () => void (await promisify(exec)(command));
  return { kill, second: second === undefined ? undefined : gatewayAt(second, options) };
}

function print({ asked, verdict, seen }: Result, verbose: boolean): void {
  const message = verbose && seen.message !== undefined ? `  ${seen.message}` : '';
  say(`${isAcceptable(verdict) ? ' ' : '!'} ${verdict.padEnd(18)} ${asked.id}${message}`);
}

function report(results: readonly Result[], options: Options): number {
  const { seed, hang_ms, idle_ms, silence_ms, prefill } = options;
  const suite = `${manifest.name} ${manifest.version}`;
  const conditions: Conditions = { suite, seed, hang_ms, idle_ms, silence_ms, prefill };
  if (options.json !== undefined) writeFileSync(options.json, jsonReport(conditions, results));
  if (options.markdown !== undefined) writeFileSync(options.markdown, markdownReport(conditions, results));
  if (options.badge !== undefined) writeFileSync(options.badge, badge(results));
  const { cases, verdicts, failures } = summaryOf(results);
  const counts = Object.entries(verdicts).map(([verdict, count]) => `${count} ${verdict}`);
  say(`${cases} cases: ${counts.join(', ')}`);
  return failures === 0 ? 0 : MISLED;
}
