import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { HoldfastProcess } from '../e2e/holdfast-process.ts';
import { startProvider } from '../provider/provider.ts';
import { freePort } from '../redis/free-port.ts';
import { AGENTS, type Command, type Places } from './agent.ts';
import { LAST_WORDS, NOTE, POEM, PROMPT, Task } from './task.ts';
import { TROUBLES } from './troubles.ts';

/*
 * Runs one agent through one trouble. test/agents/matrix.ts starts it in a network namespace with nothing but the
 * loopback interface: `node trial.ts <agent> <trouble or -> <holdfast, sidecar or straight> <directories of programs>`.
 * Prints a {@link Trial} as JSON.
 */

const LIMIT_MS = 150_000;
/**
 * How long Holdfast waits in silence before it gives up an attempt; kept short so that trials are short. Slow troubles
 * use the default.
 */
const IDLE_MS = 3_000;

export interface Trial {
  readonly agent: string;
  readonly trouble: string | undefined;
  readonly through: string;
  /** What went wrong; empty if nothing did. */
  readonly faults: readonly string[];
  /** Requests for the task that reached the provider. */
  readonly paid: number;
  readonly took_ms: number;
  /** What the agent told the user. */
  readonly said: string;
}

const [name, troubleName, through = 'holdfast', programs = ''] = process.argv.slice(2);
const agent = AGENTS.find((one) => one.name === name);
const trouble = TROUBLES.find((one) => one.name === troubleName);
if (!agent) throw new Error(`there is no agent ${name}`);

const directory = mkdtempSync(join(tmpdir(), 'holdfast-agent-'));
const places: Places = { home: join(directory, 'home'), work: join(directory, 'work') };
mkdirSync(places.home);
mkdirSync(places.work);
const base = { PATH: `${programs}:${process.env.PATH}`, HOME: places.home, TERM: 'dumb', LANG: 'C.UTF-8' };

const task = new Task(places.work, trouble);
const provider = await startProvider();
provider.respond(task.respond);

const startHoldfast = (port: number, base_url: string, data: string): Promise<HoldfastProcess> =>
  HoldfastProcess.start({
    listen: { port, admin_port: 0 },
    upstreams: { main: { base_url } },
    ...(trouble?.takes_ms === undefined && { clocks: { idle_ms: IDLE_MS } }),
    checkpoint: { store: `file:${join(directory, data)}`, lease_ms: 2_000 },
  });

/** Starts a replica. A replacement gets the same port and the same store. */
const startReplica = (port: number): Promise<HoldfastProcess> => startHoldfast(port, provider.url, 'data');

async function run({
  words,
  environment,
}: Command): Promise<{ output: string; errors: string; status: unknown }> {
  const [program = '', ...operands] = words;
  const child = spawn(program, operands, {
    cwd: places.work,
    env: { ...base, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let errors = '';
  child.stdout.on('data', (piece: Buffer) => {
    output += piece;
  });
  child.stderr.on('data', (piece: Buffer) => {
    errors += piece;
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS + (trouble?.takes_ms ?? 0));
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  clearTimeout(timer);
  return { output, errors, status: code ?? signal };
}

async function killWhenTroubled(replica: HoldfastProcess, port: number): Promise<HoldfastProcess> {
  while (task.troubled === 0) await sleep(20);
  // Gives the agent time to receive everything before the silence.
  await sleep(500);
  await replica.kill('SIGKILL');
  return startReplica(port);
}

const port = await freePort();
const replica = through === 'straight' ? undefined : await startReplica(port);
/** Runs between the agent and the replica, and is never killed. */
const sidecar =
  replica && through === 'sidecar'
    ? await startHoldfast(await freePort(), replica.url, 'sidecar')
    : undefined;
const url = (sidecar ?? replica ?? provider).url;
const commands = agent.prepare(url, places, PROMPT);
for (const command of commands.slice(0, -1)) await run(command);
const began_ms = performance.now();
const replaced = trouble?.kills && replica ? killWhenTroubled(replica, port) : undefined;
const last = commands.at(-1);
if (!last) throw new Error(`${agent.name} has no command`);
const { output, errors, status } = await run(last);
const took_ms = Math.round(performance.now() - began_ms);
const remaining = (await Promise.race([replaced, sleep(5_000)])) ?? replica;
await remaining?.kill('SIGKILL');
await sidecar?.kill('SIGKILL');

const contentOf = (file: string): string | undefined => {
  const path = join(places.work, file);
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
};
const said = agent.said?.(output) ?? output;
const notes = (contentOf('log.txt') ?? '').split('\n').filter((line) => line === NOTE).length;
const timesSaid = said.replaceAll(/\s+/g, ' ').split(LAST_WORDS).length - 1;
const isByText = 'pypi' in agent.package;
const faults = [
  status === 0 ? '' : `ended with ${status}`,
  contentOf('poem.txt')?.trimEnd() === POEM.trimEnd() ? '' : 'the poem is wrong',
  isByText || notes === 1 ? '' : `the command ran ${notes} times`,
  isByText || task.results === 2 ? '' : `the model got ${task.results} results`,
  isByText || timesSaid >= 1 ? '' : 'the last words were not said',
  trouble === undefined || task.troubled > 0 ? '' : 'the trouble never came',
].filter(Boolean);
const trial: Trial = {
  agent: agent.name,
  trouble: trouble?.name,
  through,
  faults,
  paid: task.requests,
  took_ms,
  said,
};
process.stdout.write(`${JSON.stringify(trial)}\n`);
if (process.env.AGENTS_VERBOSE) {
  process.stderr.write(`${output}\n${errors}\n`);
  for (const one of [sidecar, remaining])
    for (const line of one?.log ?? []) process.stderr.write(`${JSON.stringify(line)}\n`);
}
await provider.close().catch((error: unknown) => process.stderr.write(`${String(error)}\n`));
rmSync(directory, { recursive: true, force: true });
process.exit(0);
