import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Notes } from '../../../src/checkpoint/notes.ts';
import { ApiError } from '../../../src/lib/errors.ts';
import { CallLedger, type ClaimAnswer, type LedgerCall } from '../../../src/proxy/resume/call-ledger.ts';
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

const CLIENTS = ['a', 'b', 'c'] as const;

/** What a client does. `lost_at`: the answer to the operation of the store after so many is lost; it is asked again. */
interface Step {
  readonly act: 'claim' | 'claim_with_key' | 'result' | 'release' | 'release_unknown' | 'pass';
  readonly client: (typeof CLIENTS)[number];
  readonly replica: 0 | 1;
  readonly lost_at: number;
  readonly pass_ms: number;
}

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.record({
    act: fc.constantFrom<Step['act'][]>(
      'claim',
      'claim',
      'claim_with_key',
      'result',
      'release',
      'release_unknown',
      'pass',
    ),
    client: fc.constantFrom(...CLIENTS),
    replica: fc.constantFrom(0 as const, 1 as const),
    lost_at: fc.oneof(
      { weight: 3, arbitrary: fc.constant(Number.POSITIVE_INFINITY) },
      { weight: 1, arbitrary: fc.nat(5) },
    ),
    pass_ms: fc.constantFrom(1, HOLD_MS - 1, HOLD_MS),
  }),
  { minLength: 1, maxLength: 24 },
);

/** One tool call as it should be, without stores and replicas. */
class Model {
  now_ms = 1_700_000_000_000;
  #standing: { client: string; at_ms: number } | undefined;
  #released: string[] = [];
  #result: { readonly result: unknown } | undefined;

  claim(client: string, repeats: boolean): ClaimAnswer {
    if (this.#result) return { outcome: 'done', ...this.#result };
    const held = this.#standing;
    if (held && held.client !== client) {
      const left_ms = held.at_ms + HOLD_MS - this.now_ms;
      if (left_ms > 0) return { outcome: 'busy', retry_after_ms: left_ms };
      if (!repeats) return { outcome: 'unknown', claimed_at_ms: held.at_ms };
      this.#released.push(held.client);
      this.#standing = undefined;
    }
    this.#standing ??= { client, at_ms: this.now_ms };
    return { outcome: 'run' };
  }

  keepResult(client: string): string | undefined {
    if (this.#standing?.client !== client) return 'call_not_claimed';
    if (this.#result && this.#result.result !== client) return 'call_done';
    this.#result = { result: client };
    return undefined;
  }

  release(client: string | undefined): string | undefined {
    if (this.#result) return 'call_done';
    const held = this.#standing;
    if (!held || (client !== undefined && held.client !== client))
      return client !== undefined && this.#released.includes(client) ? undefined : 'call_not_claimed';
    if (client === undefined && held.at_ms + HOLD_MS > this.now_ms) return 'call_busy';
    this.#released.push(held.client);
    this.#standing = undefined;
    return undefined;
  }
}

class LostAnswerError extends Error {}

/** Loses an answer: the store has done what it was asked, and its caller does not know. */
class LossyNotes implements Notes {
  readonly #notes: Notes;
  lost_at = Number.POSITIVE_INFINITY;

  constructor(notes: Notes) {
    this.#notes = notes;
  }

  put = (...asked: Parameters<Notes['put']>) => this.#answer(this.#notes.put(...asked));
  claim = (...asked: Parameters<Notes['claim']>) => this.#answer(this.#notes.claim(...asked));
  get = (...asked: Parameters<Notes['get']>) => this.#answer(this.#notes.get(...asked));
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
    const seen: Record<string, number> = {};
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const model = new Model();
        const notes = stores.map((store) => new LossyNotes(store.notes));
        const time = { wall: () => model.now_ms };
        const ledgers = notes.map((each) => new CallLedger(each, time, TTL_MS));
        const call: LedgerCall = { owner: OWNER, task: newRunId(), key: 'call' };
        for (const { act, client, replica, lost_at, pass_ms } of taken) {
          const ledger = ledgers[replica] as CallLedger;
          const lossy = notes[replica] as LossyNotes;
          lossy.lost_at = lost_at;
          /** As a client does: again, until it is answered. */
          const ask = async (what: () => Promise<unknown>): Promise<unknown> => {
            try {
              return await what();
            } catch (error) {
              if (error instanceof LostAnswerError) {
                seen.lost = (seen.lost ?? 0) + 1;
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
              const terms = { claim: client, hold_ms: HOLD_MS, repeats: act === 'claim_with_key' };
              const told = (await ask(() => ledger.claim(call, terms))) as ClaimAnswer;
              expect(told).toEqual(model.claim(client, terms.repeats));
              seen[told.outcome] = (seen[told.outcome] ?? 0) + 1;
              break;
            }
            case 'result': {
              const told = await ask(() => ledger.keepResult(call, client, { result: client }));
              expect(told).toBe(model.keepResult(client));
              break;
            }
            default: {
              const claim = act === 'release' ? client : undefined;
              const told = await ask(() => ledger.release(call, claim));
              expect(told).toBe(model.release(claim));
              if (told === undefined) seen.released = (seen.released ?? 0) + 1;
            }
          }
        }
      }),
      { seed: SEED, numRuns: CASES, endOnFailure: END_ON_FAILURE },
    );
    expectShares(seen, CASES, {
      run: 1,
      done: 1 / 4,
      busy: 1 / 4,
      unknown: 1 / 8,
      released: 1 / 8,
      lost: 1 / 4,
    });
  });
});
