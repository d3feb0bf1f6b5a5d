import { expect, onTestFinished, test, vi } from 'vitest';
import { Deployment } from '../e2e/deployment.ts';
import { ALL_OF_TALK, beginTalk, fetchRun, saidBy, TALK } from '../e2e/talk.ts';
import { needs } from '../needs.ts';
import { redisBinary } from './binaries.ts';
import { LossyWire } from './lossy-wire.ts';
import { RedisServer } from './redis-server.ts';

vi.setConfig({ testTimeout: 120_000 });

const LEASE_MS = 1000;
const SALVAGE_AFTER_MS = 500;
const RUNS = 8;
/** It is still under way when the others have salvaged it, and the network is back. */
const LONG_TALK = { ...TALK, delay_ms: 40 };

const binary = await redisBinary();

if ('missing' in binary) {
  test('a replica that is cut off from Redis', needs(binary), () => {});
} else {
  test('a replica that is cut off from Redis for so long that others salvage its runs delivers them to their end', async () => {
    const server = await RedisServer.start({ binary: binary.path });
    onTestFinished(() => server.stop());
    const wire = await LossyWire.to(server.port);
    onTestFinished(() => wire.close());
    const deployment = await Deployment.start({
      replicas: 0,
      secret: 's'.repeat(32),
      stores: [`redis://127.0.0.1:${wire.port}`, server.url],
      checkpoint: { lease_ms: LEASE_MS },
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
    for (const { run } of clients) {
      await vi.waitFor(
        async () => {
          const state = await (await fetchRun(deployment.other, run)).json();
          expect(state).toMatchObject({ status: 'recovered_from_partial' });
        },
        { timeout: 20_000, interval: 50 },
      );
    }
    wire.mend();
    await Promise.all(clients.map((client) => client.ended()));

    for (const [index, { payloads, isDone }] of clients.entries()) {
      expect({ ...saidBy(payloads), done: isDone }).toEqual(ALL_OF_TALK);
      expect(deployment.requests(questions[index] ?? '')).toHaveLength(1);
    }
  });
}
