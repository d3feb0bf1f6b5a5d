import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { needs } from '../../needs.ts';
import { redisBinary } from '../../redis/binaries.ts';
import { RedisServer } from '../../redis/redis-server.ts';
import { pythonEnvironment } from '../python/environment.ts';
import { deployMailTask, turnOf } from './mail-task.ts';

const AGENT = fileURLToPath(new URL('ledger-agent.ts', import.meta.url));
const PYTHON_AGENT = fileURLToPath(new URL('ledger_agent.py', import.meta.url));
const PYTHON_CLIENT = fileURLToPath(new URL('../../../clients/python/src', import.meta.url));
/** A prime, so that the places are different ones in every step. */
const CHUNKS_BETWEEN_KILLS = 11;
/** A few dozen processes, one after the other. */
const PATIENCE_MS = 240_000;

interface End {
  readonly messages: readonly object[];
  readonly places: readonly ('chunk' | 'tool')[];
}

function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-ledger-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

/** A program with its first words. */
type Agent = readonly [program: string, ...words: string[]];

const NODE_AGENT: Agent = [process.execPath, '--disable-warning=ExperimentalWarning', AGENT];

/** Runs the agent once. Undefined where it was lost. */
function runAgent([program, ...first]: Agent, ...words: readonly string[]): Promise<End | undefined> {
  const env = { ...process.env, PYTHONPATH: PYTHON_CLIENT, PYTHONDONTWRITEBYTECODE: '1' };
  return new Promise((resolve, reject) => {
    execFile(program, [...first, ...words], { env }, (error, stdout, stderr) => {
      if (error?.signal === 'SIGKILL') resolve(undefined);
      else if (error) reject(new Error(stderr));
      else resolve(JSON.parse(stdout) as End);
    });
  });
}

const mailsIn = (mailbox: string): readonly string[] =>
  existsSync(mailbox) ? readFileSync(mailbox, 'utf8').trim().split('\n') : [];

/** Kills the agent at every tool boundary and at chunks in between: each time it begins anew, at another replica if there is one. */
async function beginAnew(
  store: string,
  replicas: number,
  manner: 'ledger' | 'stock',
  agent: Agent = NODE_AGENT,
): Promise<void> {
  const { urls, ofTask } = await deployMailTask(store, replicas);
  const [first = '', second = first] = urls;
  const mailboxes = temporaryDirectory();
  const uncut = await runAgent(agent, first, 'task-uncut', join(mailboxes, 'uncut'), '0', manner);
  if (!uncut) throw new Error('the agent was lost');
  expect(mailsIn(join(mailboxes, 'uncut'))).toEqual(['ann@kelp.test', 'bob@kelp.test']);
  const places = uncut.places.flatMap((at, index) =>
    at === 'tool' || index % CHUNKS_BETWEEN_KILLS === 0 ? [index + 1] : [],
  );
  let repeated = 0;
  for (const place of places) {
    const task = `task-lost-${place}`;
    const mailbox = join(mailboxes, task);
    expect(await runAgent(agent, first, task, mailbox, String(place), manner)).toBeUndefined();
    const again = await runAgent(agent, second, task, mailbox, '0', manner);
    expect(JSON.stringify(again?.messages).replaceAll(task, 'task-uncut'), task).toBe(
      JSON.stringify(uncut.messages),
    );
    const mails = mailsIn(mailbox);
    expect([...new Set(mails)], task).toEqual(['ann@kelp.test', 'bob@kelp.test']);
    if (mails.length > 2) repeated++;
    const turns = ofTask(task).map(turnOf);
    if (manner === 'ledger') expect(turns.length, task).toBeLessThanOrEqual(4);
  }
  if (manner === 'ledger') expect(repeated).toBe(0);
  else expect(repeated).toBeGreaterThan(places.length / 3);
}

const redis = await redisBinary();
const python = await pythonEnvironment();

describe('the tools of an agent that is lost anywhere and begins anew have their effect once', {
  timeout: PATIENCE_MS,
}, () => {
  test('memory', () => beginAnew('memory', 1, 'ledger'));

  test('file', () => beginAnew(`file:${join(temporaryDirectory(), 'store')}`, 2, 'ledger'));

  if ('missing' in redis) test('Redis', needs(redis), () => {});
  else
    test('Redis', async () => {
      const server = await RedisServer.start({ binary: redis.path });
      onTestFinished(() => server.stop());
      await beginAnew(server.url, 2, 'ledger');
    });

  if ('missing' in python) test('an agent in Python', needs(python), () => {});
  else test('an agent in Python', () => beginAnew('memory', 1, 'ledger', [python.interpreter, PYTHON_AGENT]));

  test("without Holdfast's ledger, they do not", () => beginAnew('memory', 1, 'stock'));
});
