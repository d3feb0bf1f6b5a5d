import type { CommandDescription, OptionDescription } from './command.ts';
import {
  ADMIN_OPTION,
  CONFIGURATION_OPTIONS,
  JSON_LINES_OPTION,
  JSON_OPTION,
  OWNER_OPTIONS,
} from './options.ts';

const RUN = { name: 'ID', required: true } as const;
const TASK = { name: 'TASK', required: true } as const;

const CHAOS_OPTIONS: readonly OptionDescription[] = [
  { name: 'upstream', value: 'URL', says: 'where the API lives, e.g. https://api.openai.com/v1' },
  {
    name: 'cut',
    value: 'KIND@PLACE',
    many: true,
    says: 'end the connection of an answer: reset, close or truncate; may be repeated',
    completes: ['reset@', 'close@', 'truncate@'],
  },
  {
    name: 'stall',
    value: 'DURATION@PLACE',
    many: true,
    says: 'be silent in an answer, then continue: 500ms, 5s, 2m; may be repeated',
  },
  {
    name: 'error',
    value: 'NAME@PLACE',
    many: true,
    says: 'an error in the stream: overloaded, rate_limit or server_error; or in place of the answer: 429, 500, 503, 529; may be repeated',
    completes: ['overloaded@', 'rate_limit@', 'server_error@', '429', '500', '503', '529'],
  },
  { name: 'share', value: 'P%', says: 'how many of the requests get a fault (100%)' },
  {
    name: 'seed',
    value: 'NUMBER',
    says: 'which requests get which fault: the same for the same seed (one drawn at random)',
  },
  { name: 'port', value: 'PORT', says: 'port (8081); 0 picks a free one' },
  { name: 'host', value: 'HOST', says: 'address to listen on (127.0.0.1)' },
  JSON_LINES_OPTION,
];

/** Callers without a key have no tasks of their own. */
const TASK_OWNER_OPTIONS = OWNER_OPTIONS.filter(({ name }) => name !== 'anonymous');
const TASK_OPTIONS = [...TASK_OWNER_OPTIONS, JSON_OPTION];
const REASON_OPTION: OptionDescription = {
  name: 'reason',
  value: 'TEXT',
  says: 'why, for those who look at the task',
};

/** A command that says something of a task. */
const taskCommand = (verb: string, says: string, details: readonly string[]): CommandDescription => ({
  name: `tasks ${verb}`,
  operand: TASK,
  says,
  details,
  options: [...TASK_OPTIONS, ...(verb === 'resume' ? [] : [REASON_OPTION])],
  load: async () => ({ run: (await import('./tasks.ts')).changeTask(verb) }),
});

/** Every command. The help, the completions and docs/cli.md are made of this. */
export const COMMANDS: readonly CommandDescription[] = [
  {
    name: 'serve',
    says: 'run a replica',
    details: [
      'Runs until SIGTERM or SIGINT, drains, and ends with status 0; a second signal ends it at once. SIGHUP [reloads the configuration](reload.md), and so does a change of its file. The log goes to standard output: one JSON object a line, or lines for people where that is a terminal (`--log-format`). `--workers` runs [several processes](workers.md) behind the ports. A terminal is also shown where to send requests, with one to try, and at the end how many runs there were.',
      'Flags win over `HOLDFAST_*` environment variables, which win over the file; see [configuration.md](configuration.md).',
    ],
    options: CONFIGURATION_OPTIONS,
    load: () => import('./serve.ts'),
  },
  {
    name: 'check',
    operand: {
      name: 'FILE',
      required: true,
      missing: 'check needs the file to check: holdfast check FILE',
      completes: 'file',
    },
    says: 'print the effective configuration, or what is wrong with it',
    details: [
      'Reads the file and the environment as `serve` would, connects to nothing, and prints the result, secrets redacted. Ends with status 2 if `serve` would not start with it.',
      'With `--json`, the document is `{"ok": true, "configuration": …, "warnings": […]}`, or `{"ok": false, "problems": [{"source", "path", "message"}]}`.',
    ],
    options: [JSON_OPTION],
    load: () => import('./check.ts'),
  },
  {
    name: 'doctor',
    says: 'try everything that serve will depend on: upstreams, store, ports, clocks',
    details: [
      'Loads the configuration as `serve` would and tries what it names. Each check says what was seen and, where something is to be done, what. See [what it checks](#what-doctor-checks).',
      'Of every upstream of which a model is known it asks two short answers, which cost about 150 tokens in all; `--no-requests` leaves them out. The model is that of `--model`, else that of the routes, else one that `/models` lists. An upstream without an `api_key` is asked with `HOLDFAST_API_KEY`, or the key in `--key-file`, as a client would; where several providers have none, only the one that `--model` leads to is shown it.',
      'With `--json`, the document is `{"ok", "summary": {"ok", "warn", "fail", "skipped"}, "checks": [{"subject", "name", "status", "seen", "figures", "remedy"}]}`.',
    ],
    options: [
      ...CONFIGURATION_OPTIONS,
      { name: 'model', value: 'NAME', says: 'the model to ask for, as clients name it' },
      {
        name: 'key-file',
        value: 'FILE',
        says: 'file with the key of a client, - for standard input (else HOLDFAST_API_KEY)',
        completes: 'file',
      },
      { name: 'no-requests', says: 'make no requests that cost tokens, which are about 150 per upstream' },
      JSON_OPTION,
    ],
    load: () => import('./doctor.ts'),
  },
  {
    name: 'runs list',
    says: 'the runs of a replica, those under way first',
    details: [
      'Reads the admin port. It shows no content: every client that may read the metrics may read it.',
    ],
    options: [ADMIN_OPTION, JSON_OPTION],
    load: async () => ({ run: (await import('./runs.ts')).listRuns }),
  },
  {
    name: 'runs show',
    operand: RUN,
    says: 'one run and its timeline',
    details: [
      'Reads the admin port of the replica that delivers the run. With the key of its owner it asks the API instead, unless only `--admin` is given: every replica knows every stored run there, and shows its output as well.',
    ],
    options: [ADMIN_OPTION, ...OWNER_OPTIONS, JSON_OPTION],
    load: async () => ({ run: (await import('./runs.ts')).showRun }),
  },
  {
    name: 'runs tail',
    operand: RUN,
    says: 'follow a run live',
    details: [
      "With the key of its owner it prints the text from the beginning and continues live; when the connection breaks, it reconnects at its cursor. Ends with status 1 if the answer was not finished. Like any client that comes back, it has a run whose replica was lost [taken over](resuming.md). Without a key it prints the run's timeline from the admin port.",
      'With `--json`, a line is `{"seq", "data"}`, an event as the client was sent it, or without a key an event of the timeline.',
    ],
    options: [ADMIN_OPTION, ...OWNER_OPTIONS, JSON_LINES_OPTION],
    load: () => import('./runs-tail.ts'),
  },
  {
    name: 'runs cancel',
    operand: RUN,
    says: 'end a run; only its owner can',
    details: ['Prints the result: a run that had ended before stays as it was.'],
    options: [...OWNER_OPTIONS, JSON_OPTION],
    load: async () => ({ run: (await import('./runs.ts')).cancelRun }),
  },
  {
    name: 'tasks list',
    says: 'the tasks of a key, the last one first',
    details: ['See [tasks.md](tasks.md). Shows the last hundred.'],
    options: [
      {
        name: 'status',
        value: 'STATUS',
        says: 'only those that are pending, running, failed, paused, completed or cancelled',
        completes: ['pending', 'running', 'failed', 'paused', 'completed', 'cancelled'],
      },
      { name: 'parent', value: 'TASK', says: 'only those that are a part of this task' },
      ...TASK_OPTIONS,
    ],
    load: async () => ({ run: (await import('./tasks.ts')).listOwnTasks }),
  },
  {
    name: 'tasks show',
    operand: TASK,
    says: 'one task and its last steps',
    details: [
      'With `--json`, the document is that of the API, with `last_steps` beside it: the last twenty.',
    ],
    options: TASK_OPTIONS,
    load: async () => ({ run: (await import('./tasks.ts')).showTask }),
  },
  {
    name: 'tasks export',
    operand: TASK,
    says: 'one task with its answers and the results of its tools, as JSON lines',
    details: [
      'The first line is the task (`holdfast.task`), and each of the others an answer (`holdfast.answer`), in the order of the steps, or a tool call (`holdfast.call`), as [the API](tasks.md#the-transcript) has them.',
    ],
    options: TASK_OWNER_OPTIONS,
    load: async () => ({ run: (await import('./tasks.ts')).exportTask }),
  },
  taskCommand('pause', 'have a task make no new steps', [
    'Its next request gets a 423 at every replica. The step that is under way ends, and steps that were answered are still replayed.',
  ]),
  taskCommand('resume', 'let a paused task continue', ['A task that has ended cannot be resumed.']),
  taskCommand('complete', 'say that a task is done', ['It has no new steps after that.']),
  taskCommand('cancel', 'end a task, and the answers of it that are under way', [
    'It has no new steps after that.',
  ]),
  {
    name: 'tasks delete',
    operand: TASK,
    says: 'forget a task: its steps, their runs, and the results of its tools',
    details: ['What is under way of it is cancelled. The name begins another task after that.'],
    options: TASK_OPTIONS,
    load: async () => ({ run: (await import('./tasks.ts')).purgeTask }),
  },
  {
    name: 'chaos',
    says: 'a proxy that breaks the answers of a provider, to test an application with',
    details: [
      'Hands requests on to the upstream as they are, and its answers back as they are, except for faults. See [chaos.md](chaos.md).',
      'A request that gets a fault gets one of those that `--cut`, `--stall` and `--error` name. `PLACE` is `start`, `tool`, `end`, `N%` of the answer or `N` characters, and `50%` where it is left out.',
      'Runs until SIGTERM, SIGINT or SIGHUP. Prints where it listens, a line for each fault, and totals at the end.',
    ],
    options: CHAOS_OPTIONS,
    load: () => import('./chaos.ts'),
  },
  {
    name: 'completion',
    operand: {
      name: 'SHELL',
      required: true,
      missing: 'completion needs a shell: holdfast completion bash, zsh or fish',
      completes: ['bash', 'zsh', 'fish'],
    },
    says: 'print completions for bash, zsh or fish',
    details: ['See [completions](#completions).'],
    options: [],
    load: () => import('./completion.ts'),
  },
  {
    name: 'help',
    operand: { name: 'COMMAND', required: false, many: true },
    says: 'show the commands, or the options of one',
    details: ['The same as `holdfast --help` and `holdfast COMMAND --help`.'],
    options: [],
    load: () => import('./help-command.ts'),
  },
  {
    name: 'version',
    says: 'print the version',
    details: ['The same as `holdfast --version`.'],
    options: [],
    load: () => import('./version.ts'),
  },
  {
    name: 'demo',
    operand: { name: 'ACT', required: false, many: true },
    says: 'watch answers being cut and finished; in a clone of the repository',
    details: ['Acts are numbered from 1; without any, all of them are played.'],
    options: [],
    load: () => import('./demo.ts'),
  },
];
