import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { AGENTS } from './agent.ts';
import { programsOf } from './programs.ts';
import { runTrial, verdictOf } from './run-trial.ts';
import type { Trial } from './trial.ts';
import { TROUBLES } from './troubles.ts';

/*
 * Runs real agents through every trouble: `npm run agents -- --agent Codex --through holdfast,sidecar,straight`. Each
 * trial gets its own network namespace with nothing but the loopback interface. Prints the table of docs/agents.md.
 */

const HEADS: Readonly<Record<string, string>> = {
  holdfast: '',
  sidecar: ' with a sidecar',
  straight: ' without Holdfast',
};

const { values } = parseArgs({
  options: {
    agent: { type: 'string', default: AGENTS.map(({ name }) => name).join(',') },
    trouble: { type: 'string', default: TROUBLES.map(({ name }) => name).join(',') },
    through: { type: 'string', default: 'holdfast,straight' },
    /** File to write all results to, as JSON. */
    output: { type: 'string' },
  },
});
const list = (text: string): readonly string[] => text.split(',').map((word) => word.trim());

const trials: Trial[] = [];
for (const agent of AGENTS.filter(({ name }) => list(values.agent).includes(name))) {
  const programs = await programsOf(agent);
  for (const through of list(values.through)) {
    const uncut = await runTrial(agent, '-', through, programs);
    trials.push(uncut);
    console.error(lineOf(uncut, uncut));
    for (const trouble of list(values.trouble)) {
      const trial = await runTrial(agent, trouble, through, programs);
      trials.push(trial);
      console.error(lineOf(trial, uncut));
    }
  }
}
if (values.output !== undefined) writeFileSync(values.output, JSON.stringify(trials, undefined, 2));
console.log(tableOf(trials));

function lineOf(trial: Trial, uncut: Trial): string {
  const { agent, through, trouble = 'none', took_ms, paid } = trial;
  return `${agent}, ${through}, ${trouble}: ${verdictOf(trial, uncut)}, ${paid} requests, ${took_ms} ms`;
}

function tableOf(all: readonly Trial[]): string {
  const names = [...new Set(all.map(({ agent }) => agent))];
  const ways = [...new Set(all.map(({ through }) => through))];
  const columns = names.flatMap((agent) => ways.map((through) => ({ agent, through })));
  const heads = columns.map(({ agent, through }) => `${agent}${HEADS[through] ?? `, ${through}`}`);
  const rows = [...new Set(all.map(({ trouble }) => trouble))].map((trouble) => {
    const cells = columns.map(({ agent, through }) => {
      const of = (wanted: string | undefined) =>
        all.find((one) => one.agent === agent && one.through === through && one.trouble === wanted);
      const trial = of(trouble);
      return trial ? `${verdictOf(trial, of(undefined))}; ${trial.paid}` : '';
    });
    return `| ${[trouble ?? 'nothing', ...cells].join(' | ')} |`;
  });
  return [`| | ${heads.join(' | ')} |`, `|---|${columns.map(() => '---|').join('')}`, ...rows].join('\n');
}
