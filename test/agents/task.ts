import { isObject } from '../../src/lib/json.ts';
import { deltasOf } from '../provider/deltas.ts';
import type { Fault } from '../provider/fault.ts';
import type { RecordedRequest } from '../provider/recorded-request.ts';
import type { Part, Plan } from '../provider/script.ts';

/** The user's request. The rest comes from the model's script. */
export const PROMPT = 'Note in log.txt that you were here, then write poem.txt.';

const LINES = [
  'The kelp holds fast where granite meets the tide',
  'and every winter storm goes home denied',
  'It bends to let the heavy water through',
  'and when the swell has passed it stands anew',
];
/** Long enough to cut in the middle of any event. */
export const POEM = `${Array.from({ length: 12 }, (_, verse) => `${verse + 1}. ${LINES[verse % LINES.length]}`).join('\n')}\n`;
export const NOTE = 'an agent was here';
export const FIRST_WORDS =
  'I will first leave a note in the log, so that it can be seen that this command ran, and then I will write the poem that you have asked for into its file, line by line, without any haste.';
export const LAST_WORDS =
  'The note is in the log and the poem is in its file, twelve lines of it, so all is done.';

/** Turns of the task: run a command, write a file, say the last words. */
export type Turn = 'command' | 'file' | 'end';
const TURNS: readonly Turn[] = ['command', 'file', 'end'];

/** What goes wrong in the requests of one turn, and at most how many times. */
export interface Trouble {
  readonly name: string;
  readonly turn: Turn;
  readonly fault?: Fault;
  /** How long the turn takes in total, with its events evenly spread. */
  readonly takes_ms?: number;
  readonly times: number;
  /** Kills the replica and starts it again once the provider has performed the fault. */
  readonly kills?: true;
}

type Arguments = (command: string) => object;
/** The arguments of each agent's shell tool. */
const SHELLS: Readonly<Record<string, Arguments>> = {
  exec_command: (cmd) => ({ cmd }),
  Bash: (command) => ({ command, description: 'As asked' }),
  bash: (command) => ({ command, description: 'As asked' }),
  run_commands: (command) => ({ commands: [command] }),
};
/** The arguments of each agent's tool for writing files. Agents without one use the shell tool. `path` is absolute. */
const WRITERS: Readonly<Record<string, (path: string) => object>> = {
  Write: (path) => ({ file_path: path, content: POEM }),
  write: (path) => ({ filePath: path, content: POEM }),
  apply_patch: (path) => ({ input: patchOf(path) }),
};

const patchOf = (path: string): string => {
  const added = POEM.trimEnd()
    .split('\n')
    .map((line) => `+${line}`);
  return ['*** Begin Patch', `*** Add File: ${path}`, ...added, '*** End Patch'].join('\n');
};

/** The model's side of the task, for one agent. */
export class Task {
  readonly #work: string;
  readonly #trouble: Trouble | undefined;
  #troubled = 0;
  /** Requests that were part of the task. */
  requests = 0;
  /** The number of tool results in the longest conversation. */
  results = 0;

  constructor(work: string, trouble: Trouble | undefined) {
    this.#work = work;
    this.#trouble = trouble;
  }

  /** How many times the trouble has struck. */
  get troubled(): number {
    return this.#troubled;
  }

  readonly respond = ({ body }: RecordedRequest): Plan | undefined => {
    if (!isObject(body)) return undefined;
    const tools = namesOf(body.tools);
    const isByText = tools.length === 0 && JSON.stringify(body).includes('SEARCH/REPLACE');
    // Agents also ask for things outside the task, such as a title for the session.
    if (tools.length === 0 && !isByText) return { parts: [{ text: 'A note and a poem' }] };
    this.requests++;
    const results = resultsIn(body);
    this.results = Math.max(this.results, results);
    const turn = isByText ? undefined : (TURNS[results] ?? 'end');
    const parts = turn === undefined ? this.#edit : this.#partsOf(turn, tools);
    return { parts, delay_ms: 3, ...this.#troubleIn(turn, parts) };
  };

  /** `turn` is `undefined` for an agent that does the task in one turn. */
  #troubleIn(turn: Turn | undefined, parts: readonly Part[]): Pick<Plan, 'faults' | 'delay_ms'> {
    const trouble = this.#trouble;
    if (!trouble || this.#troubled >= trouble.times) return {};
    if (turn !== undefined && trouble.turn !== turn) return {};
    this.#troubled++;
    const { fault, takes_ms } = trouble;
    return {
      // The fault must strike regardless of which attempt of a run the provider takes this request for.
      ...(fault && { faults: Array.from({ length: 100 }, () => fault) }),
      ...(takes_ms !== undefined && { delay_ms: takes_ms / deltasOf(parts, {}).length }),
    };
  }

  #partsOf(turn: Turn, tools: readonly string[]): readonly Part[] {
    if (turn === 'end') return [{ text: LAST_WORDS }];
    const path = `${this.#work}/poem.txt`;
    const writer = tools.find((name) => name in WRITERS);
    if (turn === 'file' && writer !== undefined)
      return [toolPart('call_file', writer, WRITERS[writer]?.(path) ?? {})];
    const shell = tools.find((name) => name in SHELLS) ?? '';
    const note = `echo '${NOTE}' >> ${this.#work}/log.txt`;
    const file = `cat > ${path} <<'END'\n${POEM}END`;
    const command = toolPart(`call_${turn}`, shell, SHELLS[shell]?.(turn === 'command' ? note : file) ?? {});
    return turn === 'command' ? [{ text: FIRST_WORDS }, command] : [command];
  }

  /** The single turn of an agent without tools: the agent writes the contents of this block to the file. */
  get #edit(): readonly Part[] {
    const block = [
      'poem.txt',
      '```',
      '<<<<<<< SEARCH',
      '=======',
      POEM.trimEnd(),
      '>>>>>>> REPLACE',
      '```',
      '',
    ];
    return [{ text: `${FIRST_WORDS}\n\n${block.join('\n')}` }];
  }
}

const toolPart = (id: string, name: string, fields: object): Part => ({
  tool: { id, name, arguments: JSON.stringify(fields) },
});

/** The tool names in a request, on any wire. */
function namesOf(tools: unknown): readonly string[] {
  if (!Array.isArray(tools)) return [];
  return tools.flatMap((tool: { name?: unknown; function?: { name?: unknown } }) => {
    const name = tool.name ?? tool.function?.name;
    return typeof name === 'string' ? [name] : [];
  });
}

/** Counts the tool results in a conversation, on any wire. */
function resultsIn({ messages, input }: Readonly<Record<string, unknown>>): number {
  const turns: readonly unknown[] = [messages, input].flatMap((list) => (Array.isArray(list) ? list : []));
  const blocks = turns.flatMap((turn) =>
    isObject(turn) && Array.isArray(turn.content) ? [turn, ...turn.content] : [turn],
  );
  const isResult = (block: unknown) =>
    isObject(block) &&
    (block.role === 'tool' || block.type === 'tool_result' || block.type === 'function_call_output');
  return blocks.filter(isResult).length;
}
