import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { FileStore } from '../../../src/checkpoint/file/file-store.ts';
import type { Holder, RunId } from '../../../src/checkpoint/store.ts';
import { HEADER_RECORD, newRunId, OWNER, temporaryDirectory, textOf, textRecord } from '../fixtures.ts';
import { LEASE_MS, type ReplicaCall, type ReplicaCalls } from './replica-calls.ts';

const REPLICA = join(import.meta.dirname, 'racing-replica.ts');
const REPLICAS = 3;
const ROUNDS = 10;
const RUNS_PER_ROUND = 50;

class Replica {
  readonly #child: ChildProcess;

  constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(dir: string): Promise<Replica> {
    const child = fork(REPLICA, [dir], { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    onTestFinished(() => {
      child.kill('SIGKILL');
    });
    await once(child, 'message');
    return new Replica(child);
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT' | 'SIGKILL'): void {
    this.#child.kill(signal);
  }

  async call<Kind extends keyof ReplicaCalls>(
    kind: Kind,
    argument: ReplicaCall<Kind>['argument'],
  ): Promise<ReturnType<ReplicaCalls[Kind]>> {
    this.#child.send({ kind, argument });
    const [{ answer }] = (await once(this.#child, 'message')) as [{ answer: ReturnType<ReplicaCalls[Kind]> }];
    return answer;
  }
}

function openIn(dir: string): FileStore {
  const onError = (error: Error) => expect.unreachable(error.message);
  const store = new FileStore({ dir, ttl_ms: 3_600_000, lease_ms: LEASE_MS, onError });
  onTestFinished(() => store.close());
  return store;
}

/** Starts a run in another process, which holds it. */
async function beginElsewhere(): Promise<{ store: FileStore; replica: Replica; run: RunId }> {
  const dir = temporaryDirectory();
  const store = openIn(dir);
  const replica = await Replica.start(dir);
  const run = newRunId();
  await replica.call('begin', run);
  return { store, replica, run };
}

async function holderOf(store: FileStore, run: RunId): Promise<Holder | undefined> {
  return (await store.read(run, OWNER, 0))?.holder;
}

const untilLost = (store: FileStore, run: RunId): Promise<void> =>
  vi.waitFor(async () => expect(await holderOf(store, run)).toEqual({ state: 'lost' }), {
    timeout: 10 * LEASE_MS,
    interval: 20,
  });

test('of several processes that race for an orphan exactly one gets it', async () => {
  const dir = temporaryDirectory();
  const store = openIn(dir);
  const replicas = await Promise.all(Array.from({ length: REPLICAS }, () => Replica.start(dir)));
  const wins = replicas.map(() => 0);
  for (let round = 0; round < ROUNDS; round++) {
    const runs = await Promise.all(
      Array.from({ length: RUNS_PER_ROUND }, async () => {
        const lease = await store.acquire(newRunId(), OWNER);
        await store.append(lease, [HEADER_RECORD, textRecord(0, 'a')]);
        return lease.run;
      }),
    );
    const won = await Promise.all(replicas.map((replica) => replica.call('follow', runs)));
    expect(won.flat()).toHaveLength(runs.length);
    expect(new Set(won.flat())).toEqual(new Set(runs));
    for (const [position, runs_won] of won.entries())
      wins[position] = (wins[position] as number) + runs_won.length;
    for (const run of runs) {
      const stored = await store.read(run, OWNER, 0);
      expect(stored).toMatchObject({ epoch: 2, takeovers: [{ seq: 1 }], seq: 2 });
      expect(textOf(stored?.records ?? [])).toMatch(/^a<\d+>$/);
    }
  }
  // Otherwise the processes didn't race.
  for (const count of wins) expect(count).toBeGreaterThan(0);
}, 15_000);

test('a killed process has lost its runs when its lease is over, and not before', async () => {
  const { store, replica, run } = await beginElsewhere();
  replica.signal('SIGKILL');
  const killed_at_ms = performance.now();
  await untilLost(store, run);
  expect(performance.now() - killed_at_ms).toBeGreaterThan(LEASE_MS / 2);
  expect(await store.orphans(10)).toEqual([{ run, owner: OWNER, epoch: 1 }]);
});

test('a process that was stopped falls silent, and is refused when it continues after a takeover', async () => {
  const { store, replica, run } = await beginElsewhere();
  replica.signal('SIGSTOP');
  await untilLost(store, run);
  const lease = await store.acquire(run, OWNER, 1);
  await store.append(lease, [textRecord(1, 'b')]);
  replica.signal('SIGCONT');
  expect(await replica.call('append', 1)).toEqual({ refused: 'StaleLeaseError' });
  expect(await holderOf(store, run)).toMatchObject({ state: 'alive' });
  expect(textOf((await store.read(run, OWNER, 0))?.records ?? [])).toBe('ab');
});

test('a process that was stopped and not superseded continues', async () => {
  const { store, replica, run } = await beginElsewhere();
  replica.signal('SIGSTOP');
  await untilLost(store, run);
  replica.signal('SIGCONT');
  expect(await replica.call('append', 1)).toEqual({});
  await vi.waitFor(async () => expect(await holderOf(store, run)).toMatchObject({ state: 'alive' }));
});

test('a process whose thread that serves is wedged falls silent', async () => {
  const { store, replica, run } = await beginElsewhere();
  const wedged = replica.call('wedge', 3 * LEASE_MS);
  await untilLost(store, run);
  await wedged;
  await vi.waitFor(async () => expect(await holderOf(store, run)).toMatchObject({ state: 'alive' }));
});
