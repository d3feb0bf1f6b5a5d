import { once } from 'node:events';
import { type Invocation, UsageError } from './command.ts';
import { type Fact, factLines, timeText } from './facts.ts';
import {
  askForTask,
  deleteTask,
  entriesOf,
  listSteps,
  listTasks,
  type StepDocument,
  type TaskDocument,
} from './replica-documents.ts';
import { GIVE_THE_KEY, ownerHeaders, ReplicaPort } from './replica-port.ts';
import { durationText } from './run-text.ts';
import { painter, printable, printJson, printJsonLine, widthOfOutput } from './terminal.ts';
import { type Column, textTable } from './text-table.ts';

/** Limits per answer of the API. */
const TASKS_SHOWN_MAX = 100;
const STEPS_SHOWN_MAX = 20;

const TASK_COLUMNS: readonly Column[] = [
  { title: 'TASK', width_min: 8 },
  { title: 'STATUS' },
  { title: 'STEPS', align: 'right' },
  { title: 'MODEL', width_min: 6, expendable: 1 },
  { title: 'AGE', align: 'right', expendable: 2 },
  { title: 'REASON', width_min: 6, expendable: 3 },
];

const STEP_COLUMNS: readonly Column[] = [
  { title: 'STEP', align: 'right' },
  { title: 'RUN', expendable: 1 },
  { title: 'STATUS' },
  { title: 'MODEL', width_min: 6, expendable: 2 },
  { title: 'CAUSE', width_min: 6, expendable: 3 },
];

/** `holdfast tasks list` */
export async function listOwnTasks(invocation: Invocation): Promise<void> {
  const { status, parent } = invocation.values;
  const query = new URLSearchParams({ limit: String(TASKS_SHOWN_MAX) });
  if (status !== undefined) query.set('status', status);
  if (parent !== undefined) query.set('parent', parent);
  const document = await listTasks(portOf(invocation), `?${query}`);
  if (invocation.switches.has('json')) return printJson(document);
  const { data, has_more } = document;
  if (data.length === 0 && !has_more) return void process.stdout.write('no tasks\n');
  const rows = data.map((task) => taskRow(task, Date.now()));
  printTable(TASK_COLUMNS, rows, has_more ? ['older tasks are left out'] : []);
}

function taskRow(task: TaskDocument, now_ms: number): string[] {
  const { id, status, created_at, reason, last_step } = task;
  return [
    printable(id),
    status,
    stepsText(task),
    printable(last_step?.run?.model ?? ''),
    created_at === null ? '' : durationText(now_ms - created_at * 1000),
    printable(reason ?? ''),
  ];
}

/** `holdfast tasks show` */
export async function showTask(invocation: Invocation): Promise<void> {
  const id = taskOperand(invocation);
  const api = portOf(invocation);
  const task = await askForTask(api, id);
  const after = Math.max(0, task.steps - STEPS_SHOWN_MAX);
  const steps = await listSteps(api, id, `?limit=${STEPS_SHOWN_MAX}&after=${after}`);
  if (invocation.switches.has('json')) return printJson({ ...task, last_steps: steps.data });
  process.stdout.write(`${taskLines(task).join('\n')}\n\n`);
  const omission = after > 0 ? [`the ${after} steps before these are left out`] : [];
  printTable(STEP_COLUMNS, steps.data.map(stepRow), omission);
}

function stepRow({ number, run }: StepDocument): string[] {
  return [
    String(number),
    printable(run?.id ?? ''),
    run?.status ?? 'gone',
    printable(run?.model ?? ''),
    printable(run?.end?.cause ?? ''),
  ];
}

/** For example, `3`, or `3 of 7` if the total is known. */
const stepsText = ({ steps, steps_total }: TaskDocument): string =>
  steps_total === null ? String(steps) : `${steps} of ${steps_total}`;

/** For example, `at step 3: messages[4] changed`; the paths are omitted if unknown. */
function divergenceText({ step, changed }: NonNullable<TaskDocument['diverged']>): string {
  const paths = changed?.length ? `: ${changed.join(', ')} changed` : '';
  return `at step ${step}${paths}`;
}

function taskLines(task: TaskDocument): string[] {
  const { id, parent, description, status, status_since, reason, created_at } = task;
  const { deadline_at, budget_tokens, diverged } = task;
  const spent = task.usage?.total_tokens ?? 0;
  const facts: Fact[] = [
    ['task', id],
    ...(description === null ? [] : [['about', description] as const]),
    ...(parent === null ? [] : [['part of', parent] as const]),
    ['status', status_since === null ? status : `${status} since ${timeText(status_since)}`],
    ...(reason === null ? [] : [['reason', reason] as const]),
    ['created', created_at === null ? 'unknown' : timeText(created_at)],
    ...(deadline_at === null ? [] : [['deadline', timeText(deadline_at)] as const]),
    ['steps', stepsText(task)],
    ...(diverged === null ? [] : [['diverged', divergenceText(diverged)] as const]),
    ['tokens', budget_tokens === null ? String(spent) : `${spent} of ${budget_tokens}`],
  ];
  return factLines(facts, painter(process.stdout, process.env));
}

/** `holdfast tasks export` */
export async function exportTask(invocation: Invocation): Promise<void> {
  const id = taskOperand(invocation);
  const api = portOf(invocation);
  printJsonLine(await askForTask(api, id));
  for (const list of ['transcript', 'calls'] as const) {
    for await (const entry of entriesOf(api, id, list)) {
      printJsonLine(entry);
      if (process.stdout.writableNeedDrain) await once(process.stdout, 'drain');
    }
  }
}

/** `holdfast tasks pause`, `resume`, `complete` and `cancel` */
export const changeTask = (verb: string) => async (invocation: Invocation) => {
  const id = taskOperand(invocation);
  const task = await askForTask(portOf(invocation), id, { verb, reason: invocation.values.reason });
  if (invocation.switches.has('json')) return printJson(task);
  process.stdout.write(`${printable(task.id)} ${task.status}, ${task.steps} steps\n`);
};

/** `holdfast tasks delete` */
export async function purgeTask(invocation: Invocation): Promise<void> {
  const id = taskOperand(invocation);
  const deleted = await deleteTask(portOf(invocation), id);
  if (invocation.switches.has('json')) return printJson(deleted);
  process.stdout.write(`${printable(id)} deleted\n`);
}

function printTable(columns: readonly Column[], rows: readonly string[][], remarks: readonly string[]): void {
  const [titles = '', ...lines] = textTable(columns, rows, widthOfOutput(process.stdout));
  const paint = painter(process.stdout, process.env);
  const shown = [paint(titles, 'bold'), ...lines, ...remarks.map((remark) => paint(remark, 'dim'))];
  process.stdout.write(`${shown.join('\n')}\n`);
}

const taskOperand = ({ operands: [task = ''] }: Invocation): string => task;

function portOf(invocation: Invocation): ReplicaPort {
  const owner = ownerHeaders(invocation, process.env);
  if (!owner) throw new UsageError(`tasks are shown to their owner alone: ${GIVE_THE_KEY}.`);
  return new ReplicaPort('api', invocation, process.env, owner);
}
