import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Agent } from './agent.ts';
import type { Trial } from './trial.ts';

const run = promisify(execFile);
const TRIAL = fileURLToPath(new URL('trial.ts', import.meta.url));

const APART = ['-n', '-p', '--fork', '--mount-proc'];

/**
 * In a network of its own that has only the loopback address. What it starts ends with it: Cline leaves a server behind for
 * the next session.
 */
const alone = (...words: readonly string[]) =>
  run('unshare', [...APART, 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', ...words], {
    maxBuffer: 2 ** 24,
  });

/** Why no network can be made here for a trial; `undefined` if one can. */
export async function whyNotAlone(): Promise<string | undefined> {
  try {
    await alone('true');
    return undefined;
  } catch (error) {
    return `no network of its own can be made here: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/**
 * One agent, one trouble (`-` for none). `programs`: the directory of its program. Rejects if the trial itself has failed, not
 * the agent.
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

/** `uncut`: the same without trouble. */
export function verdictOf(trial: Trial, uncut: Trial | undefined): string {
  if (trial.faults.length > 0) return trial.faults.join(', ');
  return plain(trial.said) === plain(uncut?.said ?? '') ? 'right' : 'right, and something more is printed';
}

const plain = (said: string): string =>
  said
    .replaceAll(/holdfast-agent-\w+/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
