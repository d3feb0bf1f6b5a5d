import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Deployment } from '../e2e/deployment.ts';
import type { HoldfastProcess } from '../e2e/holdfast-process.ts';
import { payloadsOf, type StreamClient } from '../e2e/stream-client.ts';
import { ALL_OF_TALK, beginTalk, fetchRun, RESUMABLE, resumeTalk, saidBy } from '../e2e/talk.ts';
import { needs } from '../needs.ts';
import { redisBinary } from './binaries.ts';
import { RedisServer } from './redis-server.ts';

vi.setConfig({ testTimeout: 120_000 });

const LEASE_MS = 1000;
/** The number of runs that a replica is delivering when it is stopped. */
const RUNS = 12;
/** How long a replica is stopped, in leases; its answers would end meanwhile. */
const PAUSES = [1.5, 2, 3];

const binary = await redisBinary();

interface State {
  readonly segments: readonly { readonly epoch: number; readonly from: number }[];
}

/** The client library's limit for consecutive requests. */
const TRIES = 8;

/** The final answer, and its run, of a client that resumes on another replica with all its events. */
async function comeBack(replica: HoldfastProcess, client: StreamClient) {
  for (let tries = 1; tries <= TRIES; tries++) {
    const response = await resumeTalk(replica, client, client.payloads.length);
    // A broken stream shows by its missing end.
    const rest = payloadsOf(await response.text().catch(() => ''));
    if (response.status !== 200 || rest.at(-1) !== '[DONE]') continue;
    return { said: saidBy([...client.payloads, ...rest]), run: response.headers.get('holdfast-run-id') };
  }
  return undefined;
}

if ('missing' in binary) {
  test('replicas that were stopped, with Redis', needs(binary), () => {});
} else {
  test.each(['interval', 'write_ahead'] as const)(
    'replicas that were stopped while others took their runs over show nothing that these have not, and lose no client (%s)',
    async (durability) => {
      const server = await RedisServer.start({ binary: binary.path });
      onTestFinished(() => server.stop());
      const deployment = await Deployment.start({
        replicas: 2,
        secret: 's'.repeat(32),
        checkpoint: { store: server.url, lease_ms: LEASE_MS, durability },
      });
      onTestFinished(() => deployment.close());
      const { holdfast, other } = deployment;
      let taken = 0;
      const forks = new Set<string | null | undefined>();
      for (const leases of PAUSES) {
        const questions = Array.from({ length: RUNS }, (_, index) => `${durability} ${leases} ${index}`);
        const clients = await Promise.all(
          questions.map((question) => beginTalk(deployment, question, RESUMABLE)),
        );
        process.kill(holdfast.pid, 'SIGSTOP');
        const stopped_ms = performance.now();
        await pause(LEASE_MS);
        // By now, everything that was in flight to the client has arrived.
        const had = clients.map(({ payloads }) => payloads.length);
        const answers = clients.map(async ({ run }) => {
          const response = await fetchRun(other, `${run}/stream?starting_after=0`);
          return saidBy(payloadsOf(await response.text()));
        });
        await pause(leases * LEASE_MS - (performance.now() - stopped_ms));
        process.kill(holdfast.pid, 'SIGCONT');
        await Promise.all(clients.map((client) => client.ended()));

        const overtaken: StreamClient[] = [];
        let interrupted = 0;
        for (const [index, client] of clients.entries()) {
          expect(await answers[index]).toEqual(ALL_OF_TALK);
          const state = (await (await fetchRun(other, client.run)).json()) as State;
          const from = state.segments.find(({ epoch }) => epoch > 1)?.from;
          if (from === undefined) continue;
          // The replica may still deliver events that were stored before the takeover, once it reads the store's reply.
          const allowed = Math.max(from - 1, durability === 'interval' ? (had[index] ?? 0) : 0);
          const { payloads } = client;
          if (payloads.length > allowed) interrupted++;
          expect(client.isDone).toBe(false);
          overtaken.push(client);
        }
        // A write that the stop interrupts is completed afterwards. There can be one, of events that need not be stored.
        expect(interrupted).toBeLessThanOrEqual(durability === 'interval' ? 1 : 0);
        taken += overtaken.length;
        const back = await Promise.all(overtaken.map((client) => comeBack(other, client)));
        expect(back.map((each) => each?.said)).toEqual(back.map(() => ALL_OF_TALK));
        for (const [index, { run }] of overtaken.entries()) {
          if (back[index]?.run !== run) forks.add(back[index]?.run);
          // Other clients still read the same answer.
          const first = await fetchRun(other, `${run}/stream?starting_after=0`);
          expect(saidBy(payloadsOf(await first.text()))).toEqual(ALL_OF_TALK);
        }
        // If the same clients resume again, they get the same runs.
        expect(await Promise.all(overtaken.map((client) => comeBack(other, client)))).toEqual(back);
      }
      expect(taken).toBeGreaterThan(RUNS);
      // With `write_ahead`, the log contains everything that clients have received, so no run needs a fork.
      expect(forks.size > 0).toBe(durability === 'interval');
    },
  );
}
