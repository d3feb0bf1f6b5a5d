import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startProvider } from '../provider/provider.ts';
import { AGENTS, type Command, type Places } from './agent.ts';
import { LAST_WORDS, NOTE, POEM, PROMPT, Task } from './task.ts';
import { TROUBLES } from './troubles.ts';

/*
 * One agent, one trouble, in a network of its own that has only the loopback address (test/agents/matrix.ts starts it
 * there): `node trial.ts <agent> <trouble or -> <holdfast or straight> <directories of programs>`. Prints a {@link Trial} as JSON.
 */

const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));
const LIMIT_MS = 150_000;
/** How long a silence lasts before the attempt is given up: short, so that trials are. */
const IDLE_MS = 3_000;

/** What came of it. */
export interface Trial {
  readonly agent: string;
  readonly trouble: string | undefined;
  readonly through: string;
  /** Everything is as it should be: what follows says what is not. */
  readonly faults: readonly string[];
  /** Requests that reached the provider for the task. */
  readonly paid: number;
  readonly took_ms: number;
  /** What was said to the user. */
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

/** A replica on a port that stays, so that it can be started again. */
class Replica {
  readonly port: number;
  #process: ChildProcess | undefined;

  constructor(port: number) {
    this.port = port;
    const settings = {
      listen: { port, admin_port: 0 },
      upstreams: { main: { base_url: provider.url } },
      clocks: { idle_ms: IDLE_MS },
      checkpoint: { store: `file:${join(directory, 'data')}`, lease_ms: 2_000 },
    };
    writeFileSync(join(directory, 'holdfast.yaml'), JSON.stringify(settings));
  }

  async start(): Promise<void> {
    const words = [CLI, 'serve', '--config', join(directory, 'holdfast.yaml')];
    this.#process = spawn(process.execPath, words, { cwd: directory, stdio: 'ignore' });
    while (!(await isOpen(this.port))) await sleep(50);
  }

  async kill(): Promise<void> {
    const process = this.#process;
    if (!process || process.exitCode !== null) return;
    process.kill('SIGKILL');
    await once(process, 'exit');
  }
}

const isOpen = (port: number): Promise<boolean> => {
  const socket = net.connect(port, '127.0.0.1');
  return once(socket, 'connect').then(
    () => !!socket.destroy(),
    () => false,
  );
};

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

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
  const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  clearTimeout(timer);
  return { output, errors, status: code ?? signal };
}

async function killWhenTroubled(replica: Replica): Promise<void> {
  while (task.troubled === 0) await sleep(20);
  // Until what comes before the silence is delivered.
  await sleep(500);
  await replica.kill();
  await replica.start();
}

const replica = new Replica(await freePort());
if (through === 'holdfast') await replica.start();
const url = through === 'holdfast' ? `http://127.0.0.1:${replica.port}/v1` : provider.url;
const commands = agent.prepare(url, places, PROMPT);
for (const command of commands.slice(0, -1)) await run(command);
const began_ms = performance.now();
const killing = trouble?.kills && through === 'holdfast' ? killWhenTroubled(replica) : undefined;
const last = commands.at(-1);
if (!last) throw new Error(`${agent.name} has no command`);
const { output, errors, status } = await run(last);
const took_ms = Math.round(performance.now() - began_ms);
await Promise.race([killing, sleep(5_000)]);
await replica.kill();

const contentOf = (file: string): string | undefined => {
  const path = join(places.work, file);
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
};
const said = agent.said(output);
const notes = (contentOf('log.txt') ?? '').split('\n').filter((line) => line === NOTE).length;
const timesSaid = said.replaceAll(/\s+/g, ' ').split(LAST_WORDS).length - 1;
const isByText = 'pypi' in agent.package;
const faults = [
  status === 0 ? '' : `ended with ${status}`,
  contentOf('poem.txt')?.trimEnd() === POEM.trimEnd() ? '' : 'the poem is wrong',
  isByText || notes === 1 ? '' : `the command ran ${notes} times`,
  isByText || task.results === 2 ? '' : `the model was told of ${task.results} results`,
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
if (process.env.AGENTS_VERBOSE) process.stderr.write(`${output}\n${errors}\n`);
await provider.close().catch((error: unknown) => process.stderr.write(`${String(error)}\n`));
rmSync(directory, { recursive: true, force: true });
process.exit(0);
