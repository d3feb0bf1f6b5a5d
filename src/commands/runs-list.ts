import type { RunSummary } from '../status/snapshot.ts';
import type { Invocation } from './command.ts';
import { readRuns } from './replica-documents.ts';
import { ReplicaPort } from './replica-port.ts';
import { durationText, stateOf } from './run-text.ts';
import { painter, printable, printJson, widthOfOutput } from './terminal.ts';
import { type Column, textTable } from './text-table.ts';

const COLUMNS: readonly Column[] = [
  { title: 'RUN' },
  { title: 'STATE' },
  { title: 'MODEL', width_min: 6, expendable: 1 },
  { title: 'UPSTREAM', width_min: 6, expendable: 2 },
  { title: 'ATTEMPT', align: 'right', expendable: 4 },
  { title: 'CHARS', align: 'right', expendable: 5 },
  { title: 'AGE', align: 'right', expendable: 3 },
  { title: 'LAST', width_min: 4, expendable: 6 },
];

export async function run(invocation: Invocation): Promise<void> {
  const admin = new ReplicaPort('admin', invocation, process.env);
  const document = await readRuns(admin);
  if (invocation.switches.has('json')) return printJson(document);
  const { live, ended, now_ms } = document;
  if (live.length + ended.length === 0) return void process.stdout.write('no runs\n');
  const rows = [...live.toReversed(), ...ended].map((summary) => rowOf(summary, now_ms));
  const [titles = '', ...lines] = textTable(COLUMNS, rows, widthOfOutput(process.stdout));
  const paint = painter(process.stdout, process.env);
  const shown = [
    paint(titles, 'bold'),
    ...lines.map((line, index) => (index < live.length ? line : paint(line, 'dim'))),
  ];
  process.stdout.write(`${shown.join('\n')}\n`);
}

function rowOf(summary: RunSummary, now_ms: number): string[] {
  const { run: id, model, upstream, attempt, characters, created_at_ms, ended_at_ms } = summary;
  return [
    printable(id),
    stateOf(summary),
    printable(model),
    printable(upstream),
    String(attempt),
    String(characters),
    durationText((ended_at_ms ?? now_ms) - created_at_ms),
    lastOf(summary),
  ];
}

/** What was wrong last, and what was done about it. */
const lastOf = ({ cause, plan }: RunSummary): string =>
  printable([cause, plan].filter((word) => word !== undefined).join(' '));
