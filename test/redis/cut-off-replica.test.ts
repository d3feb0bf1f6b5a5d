import { expect, onTestFinished, test, vi } from 'vitest';
import { Deployment } from '../e2e/deployment.ts';
import type { HoldfastProcess } from '../e2e/holdfast-process.ts';
import { payloadsOf } from '../e2e/stream-client.ts';
import { ALL_OF_TALK, beginTalk, fetchRun, saidBy, TALK } from '../e2e/talk.ts';
import { needs } from '../needs.ts';
import { redisBinary } from './binaries.ts';
import { LossyWire } from './lossy-wire.ts';
import { RedisServer } from './redis-server.ts';

vi.setConfig({ testTimeout: 120_000 });

const LEASE_MS = 1000;
const SALVAGE_AFTER_MS = 500;
const RUNS = 8;
/** Long enough to be under way still after the others have salvaged it and the network is back. */
const LONG_TALK = { ...TALK, delay_ms: 40 };

const binary = await redisBinary();

/** Waits until the replica reports this status of the run. */
const stateOf = (replica: HoldfastProcess, run: string, status: string): Promise<void> =>
  vi.waitFor(
    async () => {
      expect(await (await fetchRun(replica, run)).json()).toMatchObject({ status });
    },
    { timeout: 20_000, interval: 50 },
  );

if ('missing' in binary) {
  test('a replica that is cut off from Redis', needs(binary), () => {});
} else {
  const durabilities = ['interval', 'write_ahead'] as const;
  const title =
    'a replica that is cut off from Redis for so long that others salvage its runs delivers and stores them to their end (%s)';
  test.each(durabilities)(title, async (durability) => {
    const server = await RedisServer.start({ binary: binary.path });
    onTestFinished(() => server.stop());
    const wire = await LossyWire.to(server.port);
    onTestFinished(() => wire.close());
    const deployment = await Deployment.start({
      replicas: 0,
      secret: 's'.repeat(32),
      stores: [`redis://127.0.0.1:${wire.port}`, server.url],
      checkpoint: { lease_ms: LEASE_MS, durability },
      resume: { salvage_after_ms: SALVAGE_AFTER_MS },
    });
    onTestFinished(() => deployment.close());
    await deployment.addReplica();
    await deployment.addReplica();
    const questions = Array.from({ length: RUNS }, (_, index) => `cut off ${index}`);
    const clients = await Promise.all(
      questions.map((question) => beginTalk(deployment, question, {}, LONG_TALK)),
    );

    wire.cut();
    for (const { run } of clients) await stateOf(deployment.other, run, 'recovered_from_partial');
    wire.mend();
    await Promise.all(clients.map((client) => client.ended()));

    for (const [index, { payloads, isDone }] of clients.entries()) {
      expect({ ...saidBy(payloads), done: isDone }).toEqual(ALL_OF_TALK);
      expect(deployment.requests(questions[index] ?? '')).toHaveLength(1);
    }
    for (const { run } of clients) {
      await stateOf(deployment.other, run, 'complete');
      const replay = await fetchRun(deployment.other, `${run}/stream?starting_after=0`);
      expect(saidBy(payloadsOf(await replay.text()))).toEqual(ALL_OF_TALK);
    }
  });
}
