import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { temporaryDirectory } from '../../cli-process.ts';
import { needs } from '../../needs.ts';
import { redisBinary } from '../../redis/binaries.ts';
import { RedisServer } from '../../redis/redis-server.ts';
import { pythonEnvironment } from '../python/environment.ts';
import { type Agent, mailsIn, NODE_AGENT, nodeAgent, pythonAgent, runAgent } from './ledger-agents.ts';
import { deployMailTask, type MailTaskOptions, turnOf } from './mail-task.ts';

/**
 * Primes, so that the places differ from step to step. Frameworks take seconds to start, so their agents are killed
 * less often.
 */
const CHUNKS_BETWEEN_KILLS = 11;
const CHUNKS_BETWEEN_KILLS_OF_A_FRAMEWORK = 29;
/** A few dozen processes in sequence. */
const PATIENCE_MS = 240_000;

/**
 * Kills the agent at every tool boundary and at chunks in between. It then starts over, on another replica if there is
 * one.
 */
async function beginAnew(
  store: string,
  replicas: number,
  manner: 'ledger' | 'stock',
  agent: Agent = NODE_AGENT,
  chunks_between = CHUNKS_BETWEEN_KILLS,
  options: MailTaskOptions = {},
): Promise<void> {
  const { urls, ofTask } = await deployMailTask(store, replicas, options);
  const [first = '', second = first] = urls;
  const mailboxes = temporaryDirectory();
  const run = (url: string, task: string, place = 0) =>
    runAgent(agent, { urls: [url], task, mailbox: join(mailboxes, task), place, manner });
  const uncut = await run(first, 'task-uncut');
  if (!uncut) throw new Error('the agent was lost');
  expect(mailsIn(join(mailboxes, 'task-uncut'))).toEqual(['ann@kelp.test', 'bob@kelp.test']);
  const places = uncut.places.flatMap((at, index) =>
    at === 'tool' || index % chunks_between === 0 ? [index + 1] : [],
  );
  let repeated = 0;
  for (const place of places) {
    const task = `task-lost-${place}`;
    expect(await run(first, task, place)).toBeUndefined();
    const again = await run(second, task);
    expect(JSON.stringify(again?.messages).replaceAll(task, 'task-uncut'), task).toBe(
      JSON.stringify(uncut.messages),
    );
    const mails = mailsIn(join(mailboxes, task));
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
  else test('an agent in Python', () => beginAnew('memory', 1, 'ledger', pythonAgent(python.interpreter)));

  const ofFramework = (agent: Agent, options?: MailTaskOptions) =>
    beginAnew('memory', 1, 'ledger', agent, CHUNKS_BETWEEN_KILLS_OF_A_FRAMEWORK, options);

  /** The OpenAI Agents SDK rejects an id that it has seen before. */
  const own_ids: MailTaskOptions = { call_ids: ['call_1', 'call_2'] };

  test('a loop of the AI SDK', () => ofFramework(nodeAgent('ai-sdk-loop.ts')));

  test('a loop of the OpenAI Agents SDK', () => ofFramework(nodeAgent('openai-agents-loop.ts'), own_ids));

  const loops: readonly (readonly [framework: string, program: string, options?: MailTaskOptions])[] = [
    ['the OpenAI Agents SDK', 'openai_agents_loop.py', own_ids],
    ['Pydantic AI', 'pydantic_ai_loop.py'],
    ['LangGraph', 'langgraph_loop.py'],
  ];
  for (const [framework, program, options] of loops)
    test(`a loop of ${framework} for Python`, needs(python), async () => {
      if ('missing' in python) return;
      await ofFramework(pythonAgent(python.interpreter, program), options);
    });

  test("without Holdfast's ledger, they do not", () => beginAnew('memory', 1, 'stock'));
});
