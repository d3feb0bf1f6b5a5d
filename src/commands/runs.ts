import type { RunDetail, RunSummary } from '../status/snapshot.ts';
import { type Invocation, UsageError } from './command.ts';
import { type Fact, factLines, type Paint, timeText } from './facts.ts';
import {
  askForRun,
  type RunStatusDocument,
  type RunStatusSegment,
  readRun,
  readRuns,
} from './replica-documents.ts';
import { GIVE_THE_KEY, ownerHeaders, ReplicaPort, runOperand } from './replica-port.ts';
import { durationText, stateOf, timelineLine } from './run-text.ts';
import { painter, printable, printableLines, printJson, widthOfOutput } from './terminal.ts';
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

/** `holdfast runs list` */
export async function listRuns(invocation: Invocation): Promise<void> {
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

/** The last interruption and the plan that followed. */
const lastOf = ({ cause, plan }: RunSummary): string =>
  printable([cause, plan].filter((word) => word !== undefined).join(' '));

/** `holdfast runs show`: the delivering replica's view, or the owner's. */
export async function showRun(invocation: Invocation): Promise<void> {
  const id = runOperand(invocation);
  const owner = ownerHeaders(invocation, process.env);
  const document = owner
    ? await askForRun(new ReplicaPort('api', invocation, process.env, owner), id)
    : await readRun(new ReplicaPort('admin', invocation, process.env), id);
  if (invocation.switches.has('json')) return printJson(document);
  const paint = painter(process.stdout, process.env);
  const lines = 'timeline' in document ? detailLines(document, paint) : statusLines(document, paint);
  process.stdout.write(`${lines.join('\n')}\n`);
}

function detailLines(detail: RunDetail, paint: Paint): string[] {
  const { created_at_ms, ended_at_ms, now_ms, timeline, omitted, text } = detail;
  const facts: Fact[] = [
    ['run', detail.run],
    ['state', stateOf(detail)],
    ['model', detail.model],
    ['upstream', detail.upstream],
    ['wire', detail.wire],
    ['age', durationText((ended_at_ms ?? now_ms) - created_at_ms)],
    ['attempts', String(detail.attempt)],
    ['said', `${detail.characters} characters, ${detail.tool_calls} tool calls`],
    ['resumable', detail.resumable ? 'yes' : 'no'],
  ];
  const omission = omitted > 0 ? [`           ${omitted} entries are left out`] : [];
  return [
    ...factLines(facts, paint),
    '',
    paint('timeline', 'bold'),
    ...timeline.map((entry) => timelineLine(entry, created_at_ms)),
    ...omission,
    ...textLines(text ?? '', paint),
  ];
}

function statusLines(status: RunStatusDocument, paint: Paint): string[] {
  const { end, created_at } = status;
  const facts: Fact[] = [
    ['run', status.id],
    ['status', status.partial && status.status !== 'running' ? `${status.status} (partial)` : status.status],
    ['model', status.model ?? 'unknown'],
    ['upstream', status.upstream ?? 'unknown'],
    ['wire', status.wire ?? 'unknown'],
    ['created', created_at === null ? 'unknown' : timeText(created_at)],
    ...(end ? [['ended', `${timeText(end.at)}${end.cause === null ? '' : `, ${end.cause}`}`] as const] : []),
    ['events', String(status.cursor)],
    ['holder', `${status.holder}, epoch ${status.epoch}, ${status.takeovers} takeovers`],
    ...(status.finish_reason === null ? [] : [['finish', status.finish_reason] as const]),
  ];
  const calls = status.tool_calls.map((call) => `  ${printable(call.name)}(${printable(call.arguments)})`);
  return [
    ...factLines(facts, paint),
    '',
    paint('said by', 'bold'),
    ...status.segments.map(segmentLine),
    ...(calls.length > 0 ? ['', paint('tool calls', 'bold'), ...calls] : []),
    ...textLines(status.text, paint),
  ];
}

function segmentLine({ attempt, upstream, model, mode, plan, cause, characters }: RunStatusSegment): string {
  const said = Object.values(characters).reduce((sum, count) => sum + count, 0);
  const why = [cause, plan].filter((word) => word !== null).join(' ');
  const who = `attempt ${attempt ?? '?'} at ${upstream ?? '?'}${model === null ? '' : ` (${model})`}`;
  return printable(`  ${who}, ${mode}: ${said} characters${why === '' ? '' : `, after ${why}`}`);
}

const textLines = (text: string, paint: Paint): string[] =>
  text === '' ? [] : ['', paint('text', 'bold'), printableLines(text)];

/** `holdfast runs cancel` */
export async function cancelRun(invocation: Invocation): Promise<void> {
  const id = runOperand(invocation);
  const owner = ownerHeaders(invocation, process.env);
  if (!owner) {
    throw new UsageError(
      `only the owner of a run can cancel it: ${GIVE_THE_KEY}, or say --anonymous if the run was begun without one.`,
    );
  }
  const status = await askForRun(new ReplicaPort('api', invocation, process.env, owner), id, 'DELETE');
  if (invocation.switches.has('json')) return printJson(status);
  process.stdout.write(
    printable(
      `${status.id} ${status.status}, ${status.cursor} events, ${status.text.length} characters of text`,
    ),
  );
  process.stdout.write('\n');
}
