import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Deployment } from '../e2e/deployment.ts';
import type { HoldfastProcess } from '../e2e/holdfast-process.ts';
import { post } from '../e2e/raw-client.ts';
import { fetchRun, RESUMABLE, talkRequest } from '../e2e/talk.ts';
import { needs } from '../needs.ts';
import { redisBinary } from '../redis/binaries.ts';
import { RedisServer } from '../redis/redis-server.ts';
import { unrepeatable } from './unrepeatable.ts';

const KILLS = Number(process.env.HOLDFAST_KILLS ?? 10);
const KILLS_PER_ROUND = 5;
const ROUND_MAX_MS = 40_000;
const LEASE_MS = 3000;
/** The allowance for the recovery itself, and for a busy machine. */
const BESIDES_MS = 300 + 1000;
const WORDS = 600;
const BEGINNING_MS = 1000;
const GAP_MAX_MS = 20_000;
/** Matches a word that the first replica has not said. */
const CONTINUED = /"content":"[^"]*[b-z]\d/;

const redis = await redisBinary();

test(`after the death of a replica, a reader elsewhere gets the next event soon after the lease (${KILLS} deaths)`, {
  ...needs(redis),
  timeout: 60_000 + Math.ceil(KILLS / KILLS_PER_ROUND) * ROUND_MAX_MS,
}, async () => {
  if ('missing' in redis) return;
  const server = await RedisServer.start({ binary: redis.path });
  const deployment = await Deployment.start({
    replicas: 0,
    secret: 's'.repeat(32),
    checkpoint: { store: server.url, lease_ms: LEASE_MS },
  });
  try {
    const survivor = await deployment.addReplica();
    const gaps_ms: number[] = [];
    for (let round = 0; gaps_ms.length < KILLS; round++)
      gaps_ms.push(...(await play(deployment, survivor, round)));
    gaps_ms.sort((one, other) => one - other);
    const at = (share: number) => gaps_ms[Math.ceil(share * gaps_ms.length) - 1] as number;
    const [p50_ms, p99_ms] = [at(0.5), at(0.99)];
    console.log(`${gaps_ms.length} deaths: next event after ${p50_ms} ms (p50), ${p99_ms} ms (p99)`);
    expect(p50_ms).toBeLessThan(LEASE_MS + BESIDES_MS);
  } finally {
    await deployment.close();
    await server.stop();
  }
});

async function play(
  deployment: Deployment,
  survivor: HoldfastProcess,
  round: number,
): Promise<readonly number[]> {
  const kills = Array.from({ length: KILLS_PER_ROUND }, (_, index) => index);
  const owners = await Promise.all(kills.map(() => deployment.addReplica()));
  return Promise.all(
    kills.map(async (index) => {
      const question = `round ${round}, ${index}`;
      deployment.plan(question, unrepeatable(WORDS));
      const owner = owners[index] as HoldfastProcess;
      const first = await post(owner.url, talkRequest(question), RESUMABLE);
      void first.text().catch(() => {});
      const run = first.headers.get('holdfast-run-id') ?? '';
      const over = new AbortController();
      const signal = AbortSignal.any([over.signal, AbortSignal.timeout(GAP_MAX_MS)]);
      const reading = fetchRun(survivor, `${run}/stream?starting_after=0`, { signal });
      await pause(BEGINNING_MS + index * 300 + Math.random() * 300);
      const { body } = await reading;
      const killed_ms = performance.now();
      process.kill(owner.pid, 'SIGKILL');
      try {
        let said = '';
        for await (const bytes of body?.pipeThrough(new TextDecoderStream()) ?? []) {
          said += bytes;
          if (CONTINUED.test(said)) return Math.round(performance.now() - killed_ms);
        }
        throw new Error(`the answer ended without a takeover: ${said.slice(-500)}`);
      } finally {
        over.abort();
      }
    }),
  );
}
