import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { seedOr } from '../cases.ts';
import { temporaryDirectory } from '../cli-process.ts';
import { pythonEnvironment } from '../e2e/python/environment.ts';
import { type Agent, mailsIn, NODE_AGENT, pythonAgent, runAgent } from '../e2e/tasks/ledger-agents.ts';
import { deployMailTask, turnOf } from '../e2e/tasks/mail-task.ts';
import { needs } from '../needs.ts';
import type { RecordedRequest } from '../provider/recorded-request.ts';
import { redisBinary } from '../redis/binaries.ts';
import { RedisServer } from '../redis/redis-server.ts';

// TypeScript that isn't compiled takes longer to start than a replica lives in this test.
process.env.HOLDFAST_CLI ??= fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

const SEED = seedOr(20_261_128);
/** The number of kills, of agents and replicas together, in each row. */
const KILLS = Number(process.env.HOLDFAST_AGENT_KILLS ?? 12);
/** The time between two tokens; an answer has about thirty. */
const TOKEN_MS = 8;
/** Concurrent tasks. */
const TASKS = 2;
const TEST_MAX_MS = 120_000 + 4000 * KILLS;

/**
 * Kills the agent at the n-th place where it can die, or a replica shortly after the n-th request of the current agent
 * process.
 */
type Kill =
  | { readonly of: 'agent'; readonly place: number }
  | { readonly of: 'replica'; readonly slot: number; readonly request: number; readonly after_ms: number };

const agentKills = (places: number): fc.Arbitrary<Kill> =>
  fc.record({ of: fc.constant('agent' as const), place: fc.integer({ min: 1, max: places }) });
/** The delay covers the answer to that request and the query of the ledger that follows. */
const replicaKills: fc.Arbitrary<Kill> = fc.record({
  of: fc.constant('replica' as const),
  // The agent uses the first replica while it is up, so that one is hit more often.
  slot: fc.constantFrom(0, 0, 1),
  request: fc.integer({ min: 1, max: 3 }),
  after_ms: fc.integer({ min: 0, max: 40 * TOKEN_MS }),
});

/** The kills of one task, in order. After each kill of the agent, a new process starts the task again. */
const stories = (places: number, hasReplicas: boolean): fc.Arbitrary<readonly Kill[]> =>
  fc.noBias(
    fc.array(
      hasReplicas
        ? fc.oneof({ weight: 3, arbitrary: agentKills(places) }, { weight: 1, arbitrary: replicaKills })
        : agentKills(places),
      { minLength: 1, maxLength: 6 },
    ),
  );

interface Row {
  readonly store: string;
  readonly replicas: 1 | 2;
  readonly manner: 'ledger' | 'stock';
  readonly agent: Agent;
}

/** The totals over all tasks of a row. */
class Account {
  agents = 0;
  replicas = 0;
  tasks = 0;
  mailedTwice = 0;
  requests = 0;
  bytes = 0;

  get kills(): number {
    return this.agents + this.replicas;
  }

  /** `uncut_bytes` is the size of the answers of a task that is never interrupted. */
  report(title: string, uncut_bytes: number): string {
    const { agents, replicas, tasks, mailedTwice, requests, bytes } = this;
    const paid = (bytes / (tasks * uncut_bytes)).toFixed(2);
    return `${title}: ${tasks} tasks, ${agents} agents and ${replicas} replicas killed; a mail sent twice in ${mailedTwice}; ${requests} requests; answers paid ${paid} times`;
  }
}

const bytesOf = (requests: readonly RecordedRequest[]): number =>
  requests.reduce((sum, { sent }) => sum + sent.bytes, 0);

async function campaign(title: string, { store, replicas, manner, agent }: Row): Promise<void> {
  const { urls, ofTask, isOf, arrivals, replace } = await deployMailTask(store, replicas, {
    delay_ms: TOKEN_MS,
  });
  const mailboxes = temporaryDirectory();
  const mailboxOf = (task: string) => join(mailboxes, task);
  const run = (task: string, place = 0) =>
    runAgent(agent, { urls, task, mailbox: mailboxOf(task), place, manner });
  const uncut = await run('task-uncut');
  if (!uncut) throw new Error('the agent was lost');
  const uncut_bytes = bytesOf(ofTask('task-uncut'));
  const account = new Account();
  let replaced = Promise.resolve();
  let isReplacing = false;

  /** Never leaves both replicas down at once, because then no request of an agent could be answered. */
  const killReplica = (slot: number): void => {
    if (isReplacing) return;
    account.replicas++;
    isReplacing = true;
    replaced = replace(slot).finally(() => {
      isReplacing = false;
    });
  };
  const runUntil = async (task: string, kill: Kill) => {
    if (kill.of === 'agent') return run(task, kill.place);
    let left = kill.request;
    const onRequest = (request: RecordedRequest) => {
      if (isOf(task, request) && --left === 0) setTimeout(killReplica, kill.after_ms, kill.slot);
    };
    arrivals.on('request', onRequest);
    return run(task).finally(() => arrivals.off('request', onRequest));
  };
  const complete = async (task: string, story: readonly Kill[]): Promise<void> => {
    const replicas_before = account.replicas;
    let end: Awaited<ReturnType<typeof run>>;
    for (const kill of story) {
      end = await runUntil(task, kill);
      if (end) break;
      account.agents++;
    }
    end ??= await run(task);
    const told = `${task} of ${title}, seed ${SEED}: ${JSON.stringify(story)}`;
    expect(JSON.stringify(end?.messages).replaceAll(task, 'task-uncut'), told).toBe(
      JSON.stringify(uncut.messages),
    );
    const mails = mailsIn(mailboxOf(task));
    expect([...new Set(mails)], told).toEqual(['ann@kelp.test', 'bob@kelp.test']);
    const requests = ofTask(task);
    account.tasks++;
    account.requests += requests.length;
    account.bytes += bytesOf(requests);
    if (mails.length > 2) account.mailedTwice++;
    if (manner === 'stock') return;
    expect(mails, told).toHaveLength(2);
    // A step with a complete answer isn't requested again unless the replica that held the answer was lost.
    const ended = requests.filter(({ aborted_at_ms }) => aborted_at_ms === undefined).map(turnOf);
    const deaths = account.replicas - replicas_before;
    expect(ended.length - new Set(ended).size, told).toBeLessThanOrEqual(deaths);
  };

  const told = fc.sample(stories(uncut.places.length, replicas > 1), { seed: SEED, numRuns: KILLS });
  const completeOneByOne = async (): Promise<void> => {
    for (let story = told.pop(); story && account.kills < KILLS; story = told.pop())
      await complete(`task-${told.length}-of-them`, story);
  };
  await Promise.all(Array.from({ length: TASKS }, completeOneByOne));
  await replaced;
  console.log(account.report(title, uncut_bytes));
  expect(account.kills).toBeGreaterThanOrEqual(KILLS);
  if (manner === 'stock') expect(account.mailedTwice).toBeGreaterThan(account.tasks / 4);
}

const redis = await redisBinary();
const python = await pythonEnvironment();

const inFiles = (): string => `file:${join(temporaryDirectory(), 'store')}`;
async function inRedis(): Promise<string> {
  if ('missing' in redis) throw new Error(redis.missing);
  const server = await RedisServer.start({ binary: redis.path });
  onTestFinished(() => server.stop());
  return server.url;
}
const inMemory = (): string => 'memory';

describe(`an agent that is killed ${KILLS} times, as are its replicas (seed ${SEED})`, {
  timeout: TEST_MAX_MS,
}, () => {
  const languages: readonly (readonly [string, typeof python | object, Agent])[] = [
    ['JavaScript', {}, NODE_AGENT],
    ['Python', python, 'missing' in python ? [''] : pythonAgent(python.interpreter)],
  ];
  describe.each(languages)('in %s', (language, needed, agent) => {
    const row = async (store: string, replicas: 1 | 2, manner: Row['manner'] = 'ledger') =>
      campaign(`${language}, ${store.replace(/:.*/, '')}, ${manner}`, { store, replicas, manner, agent });

    // A replica without a shared store loses its runs when it dies, so this row has only one and never kills it.
    test('sends each mail once, with memory', needs(needed), () => row(inMemory(), 1));
    test('sends each mail once, with files', needs(needed), () => row(inFiles(), 2));
    test('sends each mail once, with Redis', needs(redis, needed), async () => row(await inRedis(), 2));
  });

  test('sends mails twice that does not ask the ledger', () =>
    campaign('JavaScript, stock', { store: 'memory', replicas: 1, manner: 'stock', agent: NODE_AGENT }));
});
