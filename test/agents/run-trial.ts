import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Agent } from './agent.ts';
import type { Trial } from './trial.ts';

const run = promisify(execFile);
const TRIAL = fileURLToPath(new URL('trial.ts', import.meta.url));

const APART = ['-n', '-p', '--fork', '--mount-proc'];

/**
 * Runs a command in its own network namespace, with nothing but the loopback interface, and in its own PID namespace,
 * so that every process it starts ends with it: Cline leaves a server running for its next session.
 */
const alone = (...words: readonly string[]) =>
  run('unshare', [...APART, 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', ...words], {
    maxBuffer: 2 ** 24,
  });

/** Why this machine can't create a network namespace for a trial; `undefined` if it can. */
export async function whyNotAlone(): Promise<string | undefined> {
  try {
    await alone('true');
    return undefined;
  } catch (error) {
    return `no network of its own can be made here: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/**
 * Runs one agent through one trouble (`-` for none). `programs` is the directory of the agent's executables. Rejects if
 * the trial itself fails, but not if the agent does.
 */
export async function runTrial(
  agent: Agent,
  trouble: string,
  through: string,
  programs: string,
): Promise<Trial> {
  const words = ['--disable-warning=ExperimentalWarning', TRIAL, agent.name, trouble, through, programs];
  const { stdout } = await alone(process.execPath, ...words);
  return JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') as Trial;
}

/** `uncut` is the same trial without trouble. */
export function verdictOf(trial: Trial, uncut: Trial | undefined): string {
  if (trial.faults.length > 0) return trial.faults.join(', ');
  return plain(trial.said) === plain(uncut?.said ?? '') ? 'right' : 'right, and something more is printed';
}

const plain = (said: string): string =>
  said
    .replaceAll(/holdfast-agent-\w+/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
