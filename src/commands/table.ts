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
    says: "break an answer's connection: reset, close or truncate; may be repeated",
    completes: ['reset@', 'close@', 'truncate@'],
  },
  {
    name: 'stall',
    value: 'DURATION@PLACE',
    many: true,
    says: 'pause an answer: 500ms, 5s, 2m; may be repeated',
  },
  {
    name: 'error',
    value: 'NAME@PLACE',
    many: true,
    says: 'send an error in the stream: overloaded, rate_limit or server_error; or instead of the answer: 429, 500, 503, 529; may be repeated',
    completes: ['overloaded@', 'rate_limit@', 'server_error@', '429', '500', '503', '529'],
  },
  { name: 'share', value: 'P%', says: 'share of the requests that get a fault (100%)' },
  {
    name: 'seed',
    value: 'NUMBER',
    says: 'repeats which requests get which fault (a random seed)',
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
  says: 'the reason, shown with the task',
};

/** A command that changes a task's state. */
const taskCommand = (verb: string, says: string, details: readonly string[]): CommandDescription => ({
  name: `tasks ${verb}`,
  operand: TASK,
  says,
  details,
  options: [...TASK_OPTIONS, ...(verb === 'resume' ? [] : [REASON_OPTION])],
  load: async () => ({ run: (await import('./tasks.ts')).changeTask(verb) }),
});

/** Every command. The help, the completions and docs/cli.md are generated from this table. */
export const COMMANDS: readonly CommandDescription[] = [
  {
    name: 'serve',
    says: 'run a replica',
    details: [
      'Runs until SIGTERM or SIGINT, drains, and exits with status 0; a second signal ends it at once. SIGHUP [reloads the configuration](reload.md), and so does a change to its file. The log goes to standard output: one JSON object a line, or readable lines on a terminal (`--log-format`). `--workers` runs [several processes](workers.md) behind the ports. On a terminal, it also prints where to send requests, with one to try, and at the end how many runs there were.',
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
    says: 'print the effective configuration, or its problems',
    details: [
      'Reads the file and the environment like `serve`, connects to nothing, runs no `api_key_command`, and prints the result with secrets redacted. Exits with status 2 if `serve` would refuse to start.',
      'With `--json`, the document is `{"ok": true, "configuration": …, "warnings": […]}`, or `{"ok": false, "problems": [{"source", "path", "message"}]}`.',
    ],
    options: [JSON_OPTION],
    load: () => import('./check.ts'),
  },
  {
    name: 'doctor',
    says: 'test everything that serve depends on: upstreams, store, ports, clocks',
    details: [
      'Loads the configuration like `serve` and tests everything in it. Each check says what it saw and, if you need to do something, what. See [what it checks](#what-doctor-checks).',
      'It asks every upstream for two short answers, if it knows a model; they cost about 150 tokens in total, and `--no-requests` skips them. The model comes from `--model`, else from the routes, else from `/models`. For an upstream without an `api_key`, it uses `HOLDFAST_API_KEY` or the key in `--key-file`, as a client would; if several providers have no key, only the one that `--model` leads to gets it.',
      'With `--json`, the document is `{"ok", "summary": {"ok", "warn", "fail", "skipped"}, "checks": [{"subject", "name", "status", "seen", "figures", "remedy"}]}`.',
    ],
    options: [
      ...CONFIGURATION_OPTIONS,
      { name: 'model', value: 'NAME', says: 'the model to ask for, by its name for clients' },
      {
        name: 'key-file',
        value: 'FILE',
        says: "file with a client's key, - for standard input (else HOLDFAST_API_KEY)",
        completes: 'file',
      },
      { name: 'no-requests', says: "don't make requests that cost tokens (about 150 per upstream)" },
      JSON_OPTION,
    ],
    load: () => import('./doctor.ts'),
  },
  {
    name: 'runs list',
    says: "list a replica's runs, active ones first",
    details: ['Reads the admin port, which shows no content and requires no key.'],
    options: [ADMIN_OPTION, JSON_OPTION],
    load: async () => ({ run: (await import('./runs.ts')).listRuns }),
  },
  {
    name: 'runs show',
    operand: RUN,
    says: 'show one run and its timeline',
    details: [
      "Reads the admin port of the replica that delivers the run. With the owner's key it asks the API instead, unless you give only `--admin`: there, every replica knows every stored run, and shows its output as well.",
    ],
    options: [ADMIN_OPTION, ...OWNER_OPTIONS, JSON_OPTION],
    load: async () => ({ run: (await import('./runs.ts')).showRun }),
  },
  {
    name: 'runs tail',
    operand: RUN,
    says: 'follow a run live',
    details: [
      "With the owner's key it prints the text from the beginning and continues live; if the connection breaks, it reconnects at its cursor. Exits with status 1 if the answer isn't finished. Like any client that comes back, it causes a run whose replica died to be [taken over](resuming.md). Without a key it prints the run's timeline from the admin port.",
      'With `--json`, a line is `{"seq", "data"}`, an event as the client got it, or without a key an event of the timeline.',
    ],
    options: [ADMIN_OPTION, ...OWNER_OPTIONS, JSON_LINES_OPTION],
    load: () => import('./runs-tail.ts'),
  },
  {
    name: 'runs cancel',
    operand: RUN,
    says: "end a run; needs its owner's key",
    details: ["Prints the result. A run that has already ended doesn't change."],
    options: [...OWNER_OPTIONS, JSON_OPTION],
    load: async () => ({ run: (await import('./runs.ts')).cancelRun }),
  },
  {
    name: 'tasks list',
    says: "list a key's tasks, newest first",
    details: ['See [tasks.md](tasks.md). Shows the last hundred.'],
    options: [
      {
        name: 'status',
        value: 'STATUS',
        says: 'only tasks with this status: pending, running, failed, paused, completed or cancelled',
        completes: ['pending', 'running', 'failed', 'paused', 'completed', 'cancelled'],
      },
      { name: 'parent', value: 'TASK', says: 'only sub-tasks of this task' },
      ...TASK_OPTIONS,
    ],
    load: async () => ({ run: (await import('./tasks.ts')).listOwnTasks }),
  },
  {
    name: 'tasks show',
    operand: TASK,
    says: 'show one task and its last steps',
    details: ["With `--json`, the document is the API's, plus `last_steps`: the last twenty."],
    options: TASK_OPTIONS,
    load: async () => ({ run: (await import('./tasks.ts')).showTask }),
  },
  {
    name: 'tasks export',
    operand: TASK,
    says: "print a task with its answers and its tools' results, as JSON lines",
    details: [
      "The first line is the task (`holdfast.task`). Each of the others is an answer (`holdfast.answer`), in the order of the steps, or a tool call (`holdfast.call`), in [the API's](tasks.md#the-transcript) form.",
    ],
    options: TASK_OWNER_OPTIONS,
    load: async () => ({ run: (await import('./tasks.ts')).exportTask }),
  },
  taskCommand('pause', 'stop a task from making new steps', [
    'Its next request gets a 423 at every replica. The current step still finishes, and answered steps are still replayed.',
  ]),
  taskCommand('resume', 'let a paused task continue', ["You can't resume a task that has ended."]),
  taskCommand('complete', 'mark a task as done', ['It takes no new steps after that.']),
  taskCommand('cancel', 'end a task and its current answers', ['It takes no new steps after that.']),
  {
    name: 'tasks delete',
    operand: TASK,
    says: "delete a task with its steps, their runs, and its tools' results",
    details: ['Cancels its current answers. Afterwards the name is free for another task.'],
    options: TASK_OPTIONS,
    load: async () => ({ run: (await import('./tasks.ts')).purgeTask }),
  },
  {
    name: 'chaos',
    says: "run a proxy that breaks a provider's answers, to test your application",
    details: [
      'Passes requests to the upstream and its answers back unchanged, except for faults. See [chaos.md](chaos.md).',
      'Each affected request gets one of the faults in `--cut`, `--stall` and `--error`. `PLACE` is `start`, `tool`, `end`, `N%` of the answer or `N` characters; the default is `50%`.',
      'Runs until SIGTERM, SIGINT or SIGHUP. Prints its address, a line for each fault, and totals at the end.',
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
    operand: {
      name: 'COMMAND',
      required: false,
      many: true,
      completes: 'command',
    },
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
    says: 'watch Holdfast finish an answer that is cut three times; needs no key',
    details: [
      'The provider is scripted and runs in the same process. Exits with status 1 if the answer differs from what that provider said. `npm run demo` in a clone of the repository has more acts, with the stock OpenAI SDK and a replica that is killed.',
    ],
    options: [],
    load: () => import('./demo.ts'),
  },
];

/** The first word of every command, in order and without repetition. */
export const firstWords = (): string[] => [
  ...new Set(COMMANDS.map(({ name }) => name.split(' ', 1)[0] ?? '')),
];
