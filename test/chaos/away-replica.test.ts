import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { seedOr } from '../cases.ts';
import { Deployment } from '../e2e/deployment.ts';
import { post } from '../e2e/raw-client.ts';
import { RESUMABLE, talkRequest } from '../e2e/talk.ts';
import { needs } from '../needs.ts';
import { redisBinary } from '../redis/binaries.ts';
import { LossyWire } from '../redis/lossy-wire.ts';
import { RedisServer } from '../redis/redis-server.ts';
import { Comparison, readRun, unrepeatable, verdictOf } from './unrepeatable.ts';
import { type Received, receive } from './verdict.ts';

const SEED = seedOr(20_261_123);
/** Runs for each kind of absence. */
const RUNS = Number(process.env.HOLDFAST_ABSENCES ?? 16);
/** All on the replica that goes away. */
const RUNS_PER_ROUND = 8;
const LEASE_MS = 1000;
const ROUND_MAX_MS = 60_000;
/** How long an answer streams before its replica goes away. */
const BEGINNING_MS = 800;
const WORDS = 160;
/** Longer than any answer takes, so that nothing is salvaged before it. */
const SALVAGE_NEVER_MS = 60_000;

const redis = await redisBinary();

interface Round {
  readonly durability: 'interval' | 'write_ahead';
  /** How long the replica is away, in leases. */
  readonly leases: number;
  /**
   * When a second client connects to the other replica, counted from the start of the absence; no second client if
   * undefined.
   */
  readonly reader_after_ms: number | undefined;
  readonly salvage_after_ms: number;
}

const rounds: fc.Arbitrary<Round> = fc.noBias(
  fc.record({
    durability: fc.constantFrom('interval', 'write_ahead'),
    leases: fc.integer({ min: 5, max: 30 }).map((tenths) => tenths / 10),
    reader_after_ms: fc.oneof(fc.constant(undefined), fc.integer({ min: 0, max: 2000 })),
    salvage_after_ms: fc.constantFrom(500, SALVAGE_NEVER_MS),
  }),
);

/** A store, and a way to cut the first replica off from it, or to stop that replica completely. */
interface Absence {
  /** The store's URL for each replica; empty if all replicas share a file store. */
  readonly stores: readonly string[];
  leave(pid: number): void;
  come(pid: number): void;
  end(): Promise<void>;
}

const stopped = {
  leave: (pid: number) => void process.kill(pid, 'SIGSTOP'),
  come: (pid: number) => void process.kill(pid, 'SIGCONT'),
};

async function stoppedWithRedis(binary: string): Promise<Absence> {
  const server = await RedisServer.start({ binary });
  return { ...stopped, stores: [server.url, server.url], end: () => server.stop() };
}

const stoppedWithFiles = async (): Promise<Absence> => ({ ...stopped, stores: [], end: async () => {} });

async function cutOff(binary: string): Promise<Absence> {
  const server = await RedisServer.start({ binary });
  const wire = await LossyWire.to(server.port);
  return {
    stores: [`redis://127.0.0.1:${wire.port}`, server.url],
    leave: () => wire.cut(),
    come: () => wire.mend(),
    end: async () => {
      await wire.close();
      await server.stop();
    },
  };
}

describe(`a replica that is away for a while (seed ${SEED})`, needs(redis), () => {
  test.each([
    { how: 'stopped, with Redis', start: stoppedWithRedis, isTakenBack: true },
    { how: 'stopped, with files', start: stoppedWithFiles, isTakenBack: false },
    { how: 'cut off from Redis', start: cutOff, isTakenBack: true },
  ])(
    `${RUNS} answers of a replica that is $how: no two different ones are complete, and none is lost unless another replica took it over`,
    async ({ how, start, isTakenBack }) => {
      if ('missing' in redis) return;
      const comparison = new Comparison(how);
      const lost: string[] = [];
      const script = fc.sample(rounds, { seed: SEED, numRuns: Math.ceil(RUNS / RUNS_PER_ROUND) });
      for (const [index, round] of script.entries()) {
        const name = `${how} ${index}, ${JSON.stringify(round)}`;
        for (const { answers, isTakenOver } of await play(await start(redis.path), round, name)) {
          comparison.add(name, unrepeatable(WORDS), answers);
          const [first] = answers;
          if (!first || isTakenOver || (!isTakenBack && mayBeSalvaged(round))) continue;
          const { kind, why } = verdictOf(first, unrepeatable(WORDS));
          if (kind !== 'exact') lost.push(`${name} ${first.run}: ${why}`);
        }
      }
      console.log(`${comparison.report()}\n${lost.length} lost without a takeover`);
      expect(comparison.wrong).toEqual([]);
      expect(lost).toEqual([]);
    },
    60_000 + Math.ceil(RUNS / RUNS_PER_ROUND) * ROUND_MAX_MS,
  );
});

/**
 * The file store can't take back a salvaged run because the run has ended. With `write_ahead`, a replica must not
 * deliver anything that isn't stored, so its answer ends there.
 */
const mayBeSalvaged = ({ durability, salvage_after_ms }: Round): boolean =>
  durability === 'write_ahead' && salvage_after_ms < SALVAGE_NEVER_MS;

interface Answered {
  /** The answers to the first client, to the second one, and to those that read the run afterwards. */
  readonly answers: readonly Received[];
  readonly isTakenOver: boolean;
}

async function play(absence: Absence, round: Round, name: string): Promise<readonly Answered[]> {
  const { durability, leases, reader_after_ms, salvage_after_ms } = round;
  const { stores } = absence;
  const deployment = await Deployment.start({
    replicas: 0,
    secret: 's'.repeat(32),
    stores,
    checkpoint: { lease_ms: LEASE_MS, durability },
    resume: { salvage_after_ms },
  });
  const holdfast = await deployment.addReplica();
  const other = await deployment.addReplica();
  try {
    const begun = await Promise.all(
      Array.from({ length: RUNS_PER_ROUND }, async (_, index) => {
        const question = `${name}, ${index}`;
        deployment.plan(question, unrepeatable(WORDS));
        const response = await post(holdfast.url, talkRequest(question), RESUMABLE);
        return { run: response.headers.get('holdfast-run-id') ?? '', first: receive(async () => response) };
      }),
    );
    await pause(BEGINNING_MS);
    absence.leave(holdfast.pid);
    const seconds = begun.map(async ({ run }) => {
      if (reader_after_ms === undefined) return [];
      await pause(reader_after_ms);
      return [await readRun(other, run)];
    });
    await pause(leases * LEASE_MS);
    absence.come(holdfast.pid);
    return await Promise.all(
      begun.map(async ({ run, first }, index) => {
        const answers = [await first, ...((await seconds[index]) ?? [])];
        for (const replica of [holdfast, other]) answers.push(await readRun(replica, run));
        const isTakenOver = other.log.some((line) => line.msg === 'taken over' && line.run === run);
        return { answers, isTakenOver };
      }),
    );
  } finally {
    absence.come(holdfast.pid);
    await deployment.close();
    await absence.end();
  }
}
