import { describe, expect, test } from 'vitest';
import { debianProgram } from '../debian-program.ts';
import { needs } from '../needs.ts';
import { redisBinary } from '../redis/binaries.ts';
import { rehearseEviction, rehearseRollout } from './rehearsal.ts';
import type { Findings } from './scene.ts';

/** The rehearsals of `npm run rehearse`, with fewer streams, shorter answers and shorter limits. */
const TEST_MAX_MS = 300_000;
const STREAMS = 60;

const [redis, haproxy] = await Promise.all([redisBinary(), debianProgram('haproxy')]);

const OPTIONS = {
  redis: 'path' in redis ? redis.path : '',
  haproxy: 'path' in haproxy ? haproxy.path : '',
  drain_ms: 4000,
  drain_delay_ms: 2000,
  check_interval_ms: 100,
  salvage_after_ms: 8000,
  streams: STREAMS,
  answer_ms_min: 3500,
  answer_ms_max: 9500,
  event_ms: 100,
  arrival_ms: 1000,
  newcomer_interval_ms: 50,
  report: () => {},
};

// Concurrent, because the tests mostly wait.
describe('behind a load balancer', { concurrent: true, ...needs(redis, haproxy) }, () => {
  test(
    'replicas are replaced one by one: no client is refused, and none is cut off before the drain is over',
    async () => {
      const { faults, ...findings } = await rehearseRollout(OPTIONS);
      expect(faults).toEqual([]);
      expectTried(findings);
      expect(findings.open).toHaveLength(3);
    },
    TEST_MAX_MS,
  );

  test(
    'a replica with all the streams is killed before it has drained: with the client, all answers are whole',
    async () => {
      const { faults, ...findings } = await rehearseEviction({ ...OPTIONS, grace_ms: 2500 });
      expect(faults).toEqual([]);
      expectTried(findings);
    },
    TEST_MAX_MS,
  );
});

/** Checks that the rehearsal exercised each promise. */
function expectTried({ clients, logs, newcomers }: Omit<Findings, 'faults'>): void {
  for (const { whole } of clients.values()) expect(whole).toBeGreaterThan(0);
  const cut = [...clients.values()].reduce((sum, tally) => sum + tally.cut, 0);
  expect(cut).toBeGreaterThan(0);
  expect(logs.moved).toBeGreaterThan(0);
  expect(newcomers.count - newcomers.overtaken).toBeGreaterThan(STREAMS);
}
