import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Place } from './mail-tool.ts';

const PYTHON_CLIENT = fileURLToPath(new URL('../../../clients/python/src', import.meta.url));

/** A program with its first words. */
export type Agent = readonly [program: string, ...words: string[]];

/** `program`: a file of this folder. */
export const nodeAgent = (program: string): Agent => [
  process.execPath,
  '--disable-warning=ExperimentalWarning',
  fileURLToPath(new URL(program, import.meta.url)),
];
export const NODE_AGENT = nodeAgent('ledger-agent.ts');
/** `program`: a file of this folder. */
export const pythonAgent = (interpreter: string, program = 'ledger_agent.py'): Agent => [
  interpreter,
  fileURLToPath(new URL(program, import.meta.url)),
];

/** What an agent has that came to the end of its task. */
export interface End {
  readonly messages: readonly object[];
  /** Where it might have been lost, in order. */
  readonly places: readonly Place[];
}

export interface Errand {
  /** Base URLs of the replicas. The first one is that of the agent's requests. */
  readonly urls: readonly string[];
  readonly task: string;
  /** A file of one line for each mail. */
  readonly mailbox: string;
  /** Where the agent is lost: the n-th place. It comes to its end where that is 0, or further than it has to go. */
  readonly place: number;
  /** `stock`: it knows nothing of tasks. */
  readonly manner: 'ledger' | 'stock';
}

/** Runs the agent once. Undefined where it was lost. */
export function runAgent([program, ...first]: Agent, errand: Errand): Promise<End | undefined> {
  const { urls, task, mailbox, place, manner } = errand;
  const words = [urls.join(','), task, mailbox, String(place), manner];
  const env = { ...process.env, PYTHONPATH: PYTHON_CLIENT, PYTHONDONTWRITEBYTECODE: '1' };
  return new Promise((resolve, reject) => {
    execFile(program, [...first, ...words], { env }, (error, stdout, stderr) => {
      if (error?.signal === 'SIGKILL') resolve(undefined);
      else if (error) reject(new Error(`${task}: ${stderr}`));
      else resolve(JSON.parse(stdout) as End);
    });
  });
}

export const mailsIn = (mailbox: string): readonly string[] =>
  existsSync(mailbox) ? readFileSync(mailbox, 'utf8').trim().split('\n') : [];
