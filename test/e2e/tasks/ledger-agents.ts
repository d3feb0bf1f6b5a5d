import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Place } from './mail-tool.ts';

const PYTHON_CLIENT = fileURLToPath(new URL('../../../clients/python/src', import.meta.url));

/** A program and its first arguments. */
export type Agent = readonly [program: string, ...words: string[]];

/** `program` is a file in this directory. */
export const nodeAgent = (program: string): Agent => [
  process.execPath,
  '--disable-warning=ExperimentalWarning',
  fileURLToPath(new URL(program, import.meta.url)),
];
export const NODE_AGENT = nodeAgent('ledger-agent.ts');
/** `program` is a file in this directory. */
export const pythonAgent = (interpreter: string, program = 'ledger_agent.py'): Agent => [
  interpreter,
  fileURLToPath(new URL(program, import.meta.url)),
];

/** What an agent has once its task is finished. */
export interface End {
  readonly messages: readonly object[];
  /** The places where it could have been lost, in order. */
  readonly places: readonly Place[];
}

export interface Errand {
  /** Base URLs of the replicas. The agent sends its requests to the first one. */
  readonly urls: readonly string[];
  readonly task: string;
  /** A file with one line per mail. */
  readonly mailbox: string;
  /** The number of the place where the agent is lost. It finishes if this is 0 or more than the number of places. */
  readonly place: number;
  /** `stock`: the agent doesn't know about tasks. */
  readonly manner: 'ledger' | 'stock';
}

/** Runs the agent once. Resolves with `undefined` if it was lost. */
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
