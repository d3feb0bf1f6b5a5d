import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { segmentName } from '../../src/checkpoint/file/names.ts';
import { foldJournal, type JournalFold } from '../../src/checkpoint/journal-fold.ts';
import { ownerOf } from '../../src/checkpoint/owner.ts';
import { loadOrCreateSecret } from '../../src/checkpoint/secret-file.ts';
import type { RunId, Store, StoredRun } from '../../src/checkpoint/store.ts';
import { systemTime } from '../../src/lib/time.ts';
import { openStore } from '../../src/server/open-store.ts';
import { seedOr } from '../cases.ts';
import { linesOf, type RunLine } from '../checkpoint/file/damaged-run.ts';
import { callsOf, chunksOf, contentOf } from '../provider/reading.ts';
import type { Plan } from '../provider/script.ts';
import { Deployment, modelOf } from './deployment.ts';
import { streamRequest } from './raw-client.ts';
import { callTo, TIDES } from './situations.ts';
import { type ReceivedEvent, StreamClient } from './stream-client.ts';

const SEED = seedOr(20_261_120);
const KILLS = 5;
const CLIENTS = 6;
const FLIPS = 24;
const INTERVAL_MS = 50;
/** Allows for timers, the writer thread, and other load on the machine. */
const SLACK_MS = 400;

const words = (count: number) => Array.from({ length: count }, (_, index) => `w${index} 🌊`).join(' ');
/** Sends an event about every 3 ms, for longer than the process lives. */
const PLAN: Plan = {
  parts: [{ text: words(60) }, { tool: callTo('call_brest', 'Brest') }, { text: words(2000) }],
  delay_ms: 3,
};

/** What the store and the client have of one run after its process was killed. */
interface Remains {
  readonly run: RunId;
  readonly file: string;
  readonly stored: StoredRun;
  readonly received: readonly ReceivedEvent[];
}

interface Wreck {
  readonly store: Store;
  readonly owner: ReturnType<typeof ownerOf>;
  readonly killed_at_ms: number;
  readonly remains: readonly Remains[];
}

/** Kills a process that serves several clients, `after_ms` after each of them has begun to read. */
async function wreck(name: string, after_ms: number): Promise<Wreck> {
  const deployment = await Deployment.start({ checkpoint: { interval_ms: INTERVAL_MS } });
  onTestFinished(() => deployment.close());
  const { holdfast } = deployment;
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, async (_, index) => {
      const question = `${name} ${index}`;
      deployment.plan(question, PLAN);
      const tools = [{ type: 'function', function: TIDES }];
      const client = await StreamClient.open(holdfast.url, streamRequest(modelOf('h1'), question, { tools }));
      await client.read();
      return client;
    }),
  );
  await setTimeout(after_ms);
  const killed_at_ms = performance.now();
  await holdfast.kill('SIGKILL');
  await Promise.all(clients.map((client) => client.ended()));

  const directory = deployment.store;
  const store = await openStore(`file:${directory}`, {
    time: systemTime,
    ttl_s: 3600,
    lease_ms: 3000,
    sealing_keys: [],
    secret: undefined,
    on_unreachable: 'fail',
    onError: () => {},
    onOutage: () => {},
    onRecovery: () => {},
  });
  onTestFinished(() => store.close());
  const owner = ownerOf(await loadOrCreateSecret(directory), { authorization: 'Bearer client-key' });
  const remains = clients.map(async ({ run, events }): Promise<Remains> => {
    const stored = await store.read(run as RunId, owner, 0);
    if (!stored) throw new Error(`${run} is not in the store`);
    return { run: run as RunId, file: join(directory, segmentName(1)), stored, received: events };
  });
  return { store, owner, killed_at_ms, remains: await Promise.all(remains) };
}

/** The content of these events, as a journal would have it. */
function saidBy(events: readonly ReceivedEvent[]) {
  const chunks = chunksOf(events.map(({ data }) => data).join('\n\n'));
  return { text: contentOf(chunks), tool_calls: callsOf(chunks) };
}

const saidIn = ({ text, tool_calls }: JournalFold) => ({
  text,
  tool_calls: tool_calls.map(({ id, name, arguments: json }) => ({ id, name, arguments: json })),
});

const MOMENTS = fc.sample(fc.integer({ min: 50, max: 1500 }), { seed: SEED, numRuns: KILLS });

describe(`a process killed in mid-stream (seed ${SEED})`, () => {
  test.each(MOMENTS)(
    'after %i ms leaves what its clients have, but for the last moments',
    async (after_ms) => {
      const { killed_at_ms, remains } = await wreck(`killed ${after_ms}`, after_ms);
      for (const { file, stored, received } of remains) {
        expect(existsSync(file)).toBe(true);
        expect(stored.status).toBe('running');
        const journal = foldJournal(stored.records);
        expect(journal.seq).toBe(stored.seq);
        // The journal is never ahead of the client: events are written to both in the same turn, to the client first.
        expect(journal.seq).toBeLessThanOrEqual(received.length);
        expect(saidIn(journal)).toEqual(saidBy(received.slice(0, journal.seq)));
        const overdue_ms = killed_at_ms - INTERVAL_MS - SLACK_MS;
        const overdue = received.filter(({ at_ms }) => at_ms < overdue_ms).length;
        expect(journal.seq).toBeGreaterThanOrEqual(overdue);
        // The first content is stored at once.
        if (after_ms > SLACK_MS) expect(journal.seq).toBeGreaterThan(0);
      }
    },
  );

  test('a byte that flips in what is left is noticed, and all before it is kept', async () => {
    const { store, owner, remains } = await wreck('flipped', 1000);
    const { run, file, stored } = remains[0] as Remains;
    const bytes = readFileSync(file);
    const lines = linesOf(bytes, run)
      .slice(1)
      .filter(({ kind }) => kind === 'r');
    const places = fc.sample(
      fc.record({
        line: fc.nat(lines.length - 1),
        share: fc.double({ min: 0, max: 0.999, noNaN: true }),
        bit: fc.nat(7),
      }),
      { seed: SEED, numRuns: FLIPS },
    );
    for (const { line: whole, share, bit } of places) {
      const { start, end } = lines[whole] as RunLine;
      const place = start + Math.floor(share * (end - start - 1));
      const flipped = Buffer.from(bytes);
      flipped.writeUInt8(bytes.readUInt8(place) ^ (1 << bit), place);
      writeFileSync(file, flipped);
      const read = await store.read(run, owner, 0);
      expect(read?.damage, `bit ${bit} of byte ${place} of ${bytes.length}`).toMatchObject({ record: whole });
      expect(read?.records).toEqual(stored.records.slice(0, whole));
      expect(read?.status).toBe('running');
    }
  });
});
