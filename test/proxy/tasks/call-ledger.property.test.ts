import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { MemoryStore } from '../../../src/checkpoint/memory/store.ts';
import type { Notes } from '../../../src/checkpoint/notes.ts';
import { ApiError } from '../../../src/lib/errors.ts';
import { systemTime } from '../../../src/lib/time.ts';
import { CallLedger, type ClaimAnswer, type LedgerCall } from '../../../src/proxy/tasks/call-ledger.ts';
import { caseShare, END_ON_FAILURE, PROPERTY_MAX_MS, seedOr } from '../../cases.ts';
import { newRunId, OWNER } from '../../checkpoint/fixtures.ts';
import { storeDeployments } from '../../checkpoint/store-deployments.ts';
import { needs } from '../../needs.ts';
import { expectShares } from '../../shares.ts';

const SEED = seedOr(20_261_127);
const CASES = caseShare(2);
const TTL_MS = 3_600_000;
const HOLD_MS = 1000;
const { deployments, missing } = await storeDeployments({ ttl_ms: TTL_MS, lease_ms: 1000 });

for (const [name, reason] of missing) test(`the ${name} store`, needs({ missing: reason }), () => {});

const CLAIMS = ['a', 'b', 'c', 'd'] as const;

/**
 * A request about a claim, from its own client or from another one, in any order: requests may be late or repeated.
 * `lost_at`: the index of the store operation whose answer is lost, after which the client repeats its request.
 */
interface Step {
  readonly act: 'claim' | 'claim_with_key' | 'result' | 'release' | 'pass';
  readonly claim: (typeof CLAIMS)[number];
  readonly replica: 0 | 1;
  readonly lost_at: number;
  readonly pass_ms: number;
}

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.record({
    act: fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom<Step['act'][]>('claim', 'claim', 'claim_with_key') },
      { weight: 3, arbitrary: fc.constantFrom<Step['act'][]>('release', 'pass') },
      // A result settles the call, so it's rarer.
      { weight: 1, arbitrary: fc.constant<Step['act']>('result') },
    ),
    claim: fc.constantFrom(...CLAIMS),
    replica: fc.constantFrom(0 as const, 1 as const),
    lost_at: fc.oneof(
      { weight: 3, arbitrary: fc.constant(Number.POSITIVE_INFINITY) },
      { weight: 1, arbitrary: fc.nat(5) },
    ),
    pass_ms: fc.constantFrom(1, HOLD_MS - 1, HOLD_MS),
  }),
  { minLength: 1, maxLength: 24 },
);

/** The expected behaviour of one tool call, without stores or replicas. */
class Model {
  now_ms = 1_700_000_000_000;
  #standing: { claim: string; at_ms: number } | undefined;
  readonly #released = new Set<string>();
  #result: { readonly result: unknown } | undefined;

  claim(claim: string, repeats: boolean): ClaimAnswer | 'claim_released' {
    if (this.#result) return { outcome: 'done', ...this.#result };
    if (this.#released.has(claim)) return 'claim_released';
    const held = this.#standing;
    if (held && held.claim !== claim) {
      const left_ms = held.at_ms + HOLD_MS - this.now_ms;
      if (left_ms > 0) return { outcome: 'busy', retry_after_ms: left_ms };
      if (!repeats) return { outcome: 'unknown', claim: held.claim, claimed_at_ms: held.at_ms };
      this.release(held.claim);
    }
    this.#standing ??= { claim, at_ms: this.now_ms };
    return { outcome: 'run' };
  }

  keepResult(claim: string): string | undefined {
    if (this.#standing?.claim !== claim) return 'call_not_claimed';
    this.#result = { result: claim };
    return undefined;
  }

  release(claim: string): string | undefined {
    if (this.#result) return 'call_done';
    if (this.#standing?.claim === claim) {
      this.#released.add(claim);
      this.#standing = undefined;
    }
    return this.#released.has(claim) ? undefined : 'call_not_claimed';
  }
}

class LostAnswerError extends Error {}

/** Loses an answer: the store has carried out the operation, but its caller doesn't know. */
class LossyNotes implements Notes {
  readonly #notes: Notes;
  lost_at = Number.POSITIVE_INFINITY;

  constructor(notes: Notes) {
    this.#notes = notes;
  }

  put = (...asked: Parameters<Notes['put']>) => this.#answer(this.#notes.put(...asked));
  claim = (...asked: Parameters<Notes['claim']>) => this.#answer(this.#notes.claim(...asked));
  get = (...asked: Parameters<Notes['get']>) => this.#answer(this.#notes.get(...asked));
  extend = (...asked: Parameters<Notes['extend']>) => this.#answer(this.#notes.extend(...asked));
  consume = (...asked: Parameters<Notes['consume']>) => this.#answer(this.#notes.consume(...asked));

  async #answer<Answer>(answer: Promise<Answer>): Promise<Answer> {
    const value = await answer;
    if (this.lost_at-- === 0) throw new LostAnswerError();
    return value;
  }
}

describe.each(Object.keys(deployments))('one tool call in the %s store, at two replicas', (name) => {
  test(`is claimed, released and done as if there was one ledger (${CASES} cases, seed ${SEED})`, {
    timeout: PROPERTY_MAX_MS,
  }, async () => {
    const open = deployments[name]?.();
    if (!open) throw new Error('there is no such store');
    const stores = [await open(), await open()] as const;
    onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))));
    const seen = situationCounts();
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const model = new Model();
        const saw = seen.ofCase();
        const notes = stores.map((store) => new LossyNotes(store.notes));
        const time = { wall: () => model.now_ms };
        const ledgers = notes.map((each) => new CallLedger(each, time, TTL_MS));
        const call: LedgerCall = { owner: OWNER, task: newRunId(), key: 'call' };
        for (const { act, claim, replica, lost_at, pass_ms } of taken) {
          const ledger = ledgers[replica] as CallLedger;
          const lossy = notes[replica] as LossyNotes;
          lossy.lost_at = lost_at;
          /** Repeats the request until it's answered, as a client does. */
          const ask = async (what: () => Promise<unknown>): Promise<unknown> => {
            try {
              return await what();
            } catch (error) {
              if (error instanceof LostAnswerError) {
                saw('lost');
                return ask(what);
              }
              if (error instanceof ApiError) return error.code;
              throw error;
            }
          };
          switch (act) {
            case 'pass':
              model.now_ms += pass_ms;
              break;
            case 'claim':
            case 'claim_with_key': {
              const terms = { claim, hold_ms: HOLD_MS, repeats: act === 'claim_with_key' };
              const told = (await ask(() => ledger.claim(call, terms))) as ReturnType<Model['claim']>;
              expect(told).toEqual(model.claim(claim, terms.repeats));
              saw(typeof told === 'string' ? told : told.outcome);
              break;
            }
            case 'result': {
              const told = await ask(() => ledger.keepResult(call, claim, { result: claim }));
              expect(told).toBe(model.keepResult(claim));
              break;
            }
            default: {
              const told = await ask(() => ledger.release(call, claim));
              expect(told).toBe(model.release(claim));
              if (told === undefined) saw('released');
            }
          }
        }
      }),
      { seed: SEED, numRuns: CASES, endOnFailure: END_ON_FAILURE },
    );
    expectShares(seen.counts, CASES, {
      run: 0.9,
      busy: 0.5,
      lost: 0.4,
      released: 0.16,
      unknown: 0.08,
      done: 0.07,
      claim_released: 0.06,
    });
  });
});

/** A client that wants to run the tool of the call. */
interface Client {
  readonly attempts: number;
  readonly hold_ms: number;
  /** What it does once it may run the tool. */
  readonly next: 'is_lost' | 'keeps_its_result' | 'releases_its_claim';
  /** How many times it sends each request. It uses the first answer, and the others are late. */
  readonly copies: number;
}

const clientsAtOnce: fc.Arbitrary<readonly Client[]> = fc.array(
  fc.record({
    attempts: fc.integer({ min: 1, max: 4 }),
    hold_ms: fc.constantFrom(1, 10, 1000),
    next: fc.constantFrom('is_lost', 'keeps_its_result', 'releases_its_claim'),
    copies: fc.integer({ min: 1, max: 3 }),
  }),
  { minLength: 2, maxLength: 6 },
);

test(`of clients that claim at once, a second one runs the tool only where the first was released (${CASES} cases, seed ${SEED})`, {
  timeout: PROPERTY_MAX_MS,
}, async () => {
  const seen = situationCounts();
  await fc.assert(
    fc.asyncProperty(clientsAtOnce, fc.scheduler(), async (clients, scheduler) => {
      const saw = seen.ofCase();
      let now_ms = 1_700_000_000_000;
      const store = new MemoryStore({ time: systemTime, ttl_ms: TTL_MS });
      const ledger = new CallLedger(interleaved(store.notes, scheduler), { wall: () => now_ms++ }, TTL_MS);
      const call: LedgerCall = { owner: OWNER, task: newRunId(), key: 'call' };
      /** Claims that may run the tool and that no client has started to release. */
      const running = new Set<string>();
      const ran = new Set<string>();
      const lost = new Set<string>();
      const results = new Set<string>();
      const late: Promise<unknown>[] = [];
      const firstOf = <Answer>(copies: number, ask: () => Promise<Answer>): Promise<Answer | undefined> => {
        const answers = Array.from({ length: copies }, () => ask().catch(refused));
        late.push(...answers);
        return Promise.race(answers);
      };
      const release = (claim: string, copies: number) => {
        running.delete(claim);
        return firstOf(copies, () => ledger.release(call, claim));
      };
      const attempt = async ({ hold_ms, next, copies }: Client, claim: string): Promise<void> => {
        const told = await firstOf(copies, () => ledger.claim(call, { claim, hold_ms, repeats: false }));
        if (told?.outcome === 'done') {
          results.add(String(told.result));
          saw('done');
        }
        if (told?.outcome === 'unknown' && lost.has(told.claim)) {
          saw('found_out');
          await release(told.claim, copies);
        }
        if (told?.outcome !== 'run') return;
        if (ran.size > 0) saw('run_again');
        ran.add(claim);
        running.add(claim);
        expect([...running]).toEqual([claim]);
        if (next === 'is_lost') lost.add(claim);
        if (next === 'keeps_its_result')
          await firstOf(copies, () => ledger.keepResult(call, claim, { result: claim }));
        if (next === 'releases_its_claim') await release(claim, copies);
      };
      const work = clients.map(async (client, index) => {
        for (let number = 0; number < client.attempts && !lost.has(`${index}.${number - 1}`); number++)
          await attempt(client, `${index}.${number}`);
      });
      await scheduler.waitFor(Promise.all(work));
      await scheduler.waitFor(Promise.all(late));
      expect(results.size).toBeLessThanOrEqual(1);
      expect([...results].filter((claim) => !ran.has(claim))).toEqual([]);
    }),
    { seed: SEED, numRuns: CASES, endOnFailure: END_ON_FAILURE },
  );
  expectShares(seen.counts, CASES, { run_again: 0.3, done: 0.4, found_out: 0.18 });
});

/** Notes whose operations take place in the order that the scheduler chooses. */
function interleaved(notes: Notes, scheduler: fc.Scheduler): Notes {
  const later = <Asked extends unknown[], Answer>(ask: (...asked: Asked) => Promise<Answer>) =>
    scheduler.scheduleFunction(ask);
  return {
    put: later((...asked) => notes.put(...asked)),
    claim: later((...asked) => notes.claim(...asked)),
    get: later((...asked) => notes.get(...asked)),
    consume: later((...asked) => notes.consume(...asked)),
  } as Notes;
}

/** The number of cases in which each situation occurred. */
function situationCounts() {
  const counts: Record<string, number> = {};
  const ofCase = () => {
    const met = new Set<string>();
    return (situation: string) => {
      if (!met.has(situation)) counts[situation] = (counts[situation] ?? 0) + 1;
      met.add(situation);
    };
  };
  return { counts, ofCase };
}

function refused(error: unknown): undefined {
  if (!(error instanceof ApiError)) throw error;
}
