import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { MemoryStore } from '../../../src/checkpoint/memory/store.ts';
import type { Notes } from '../../../src/checkpoint/notes.ts';
import { systemTime } from '../../../src/lib/time.ts';
import {
  CallLedger,
  type ClaimTerms,
  type LedgerCall,
  RESULT_CHARACTERS_MAX,
} from '../../../src/proxy/tasks/call-ledger.ts';
import { newRunId, OWNER, STRANGER } from '../../checkpoint/fixtures.ts';
import { storeDeployments } from '../../checkpoint/store-deployments.ts';
import { needs } from '../../needs.ts';

const TTL_MS = 3_600_000;
const HOLD_MS = 60_000;
const { deployments, missing } = await storeDeployments({ ttl_ms: TTL_MS, lease_ms: 1000 });

for (const [name, reason] of missing) test(`the ${name} store`, needs({ missing: reason }), () => {});

const termsOf = (claim: string, more: Partial<ClaimTerms> = {}): ClaimTerms => ({
  claim,
  hold_ms: HOLD_MS,
  repeats: false,
  ...more,
});

const code = (name: string) => ({ code: name });

test('a claim is kept for as long as its tool may take, and then for as long as a run', async () => {
  const store = new MemoryStore({ time: systemTime, ttl_ms: TTL_MS });
  const kept = vi.spyOn(store.notes, 'claim');
  const ledger = new CallLedger(store.notes, systemTime, TTL_MS);
  const call = { owner: OWNER, task: 'T23', key: 'c1' };
  await ledger.claim(call, termsOf('first', { hold_ms: 2 * TTL_MS }));
  expect(kept.mock.calls.map(([, , , ttl_ms]) => ttl_ms)).toEqual([3 * TTL_MS]);
});

describe.each(Object.keys(deployments))('the ledger in the %s store', (name) => {
  /** Two replicas, and a call in a task of its own. */
  async function ledgers() {
    const open = deployments[name]?.();
    if (!open) throw new Error('there is no such store');
    let now_ms = 1_700_000_000_000;
    const notes: Notes[] = [];
    for (let replica = 0; replica < 2; replica++) {
      const store = await open();
      onTestFinished(() => store.close());
      notes.push(store.notes);
    }
    const [a, b] = notes.map((each) => new CallLedger(each, { wall: () => now_ms }, TTL_MS)) as [
      CallLedger,
      CallLedger,
    ];
    const call: LedgerCall = { owner: OWNER, task: newRunId(), key: 'send_mail 1' };
    const pass = (ms: number) => {
      now_ms += ms;
    };
    return { a, b, call, pass };
  }

  test('one of many that claim a call at once runs it', async () => {
    const { a, b, call } = await ledgers();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => (index % 2 ? a : b).claim(call, termsOf(`claim ${index}`))),
    );
    expect(answers.filter(({ outcome }) => outcome === 'run')).toHaveLength(1);
    expect(answers.filter(({ outcome }) => outcome === 'busy')).toHaveLength(19);
  });

  test('a call that was run is done at every replica, with its result', async () => {
    const { a, b, call } = await ledgers();
    expect(await a.claim(call, termsOf('first'))).toEqual({ outcome: 'run' });
    await a.keepResult(call, 'first', { result: { sent: true } });
    expect(await b.claim(call, termsOf('second'))).toEqual({ outcome: 'done', result: { sent: true } });
    // The client repeats its request, as it does if the answer was lost.
    await b.keepResult(call, 'first', { result: { sent: true } });
    await expect(b.keepResult(call, 'first', { result: 'another' })).rejects.toMatchObject(code('call_done'));
    await expect(b.release(call, 'first')).rejects.toMatchObject(code('call_done'));
  });

  test('a result that was kept by its client is done all the same', async () => {
    const { a, b, call } = await ledgers();
    await a.claim(call, termsOf('first'));
    const length = RESULT_CHARACTERS_MAX - '{"result":""}'.length;
    await expect(a.keepResult(call, 'first', { result: 'x'.repeat(length + 1) })).rejects.toMatchObject({
      ...code('result_too_large'),
      status: 413,
    });
    expect(await b.claim(call, termsOf('second'))).toMatchObject({ outcome: 'busy' });
    await a.keepResult(call, 'first', {});
    expect(await b.claim(call, termsOf('second'))).toEqual({ outcome: 'done' });
    const other = { ...call, key: 'send_mail 2' };
    await a.claim(other, termsOf('first'));
    await a.keepResult(other, 'first', { result: 'x'.repeat(length) });
    expect(await b.claim(other, termsOf('second'))).toEqual({ outcome: 'done', result: 'x'.repeat(length) });
  });

  test('a claim whose client is lost is unknown once it has lapsed, and never run again by itself', async () => {
    const { a, b, call, pass } = await ledgers();
    await a.claim(call, termsOf('first'));
    pass(HOLD_MS - 1);
    expect(await b.claim(call, termsOf('second'))).toEqual({ outcome: 'busy', retry_after_ms: 1 });
    pass(1);
    const unknown = { outcome: 'unknown', claim: 'first', claimed_at_ms: 1_700_000_000_000 };
    expect(await b.claim(call, termsOf('second'))).toEqual(unknown);
    pass(TTL_MS / 2);
    expect(await b.claim(call, termsOf('third'))).toEqual(unknown);
    // The first client was slow, not lost.
    await a.keepResult(call, 'first', { result: 'sent' });
    expect(await b.claim(call, termsOf('third'))).toEqual({ outcome: 'done', result: 'sent' });
  });

  test('an unknown call is run again where its client has found out that it was not run', async () => {
    const { a, b, call, pass } = await ledgers();
    await a.claim(call, termsOf('first'));
    pass(HOLD_MS);
    await b.release(call, 'first');
    expect(await b.claim(call, termsOf('second'))).toEqual({ outcome: 'run' });
    await expect(a.keepResult(call, 'first', { result: 1 })).rejects.toMatchObject(code('call_not_claimed'));
    // The slow client's requests arrive at last.
    await expect(a.claim(call, termsOf('first'))).rejects.toMatchObject(code('claim_released'));
    await a.release(call, 'first');
    expect(await a.claim(call, termsOf('third'))).toMatchObject({ outcome: 'busy' });
  });

  test('an unknown call is run again where its tool may be, by one client', async () => {
    const { a, b, call, pass } = await ledgers();
    await a.claim(call, termsOf('first'));
    pass(HOLD_MS);
    const again = await Promise.all(
      [a, b, a, b].map((ledger, index) => ledger.claim(call, termsOf(`again ${index}`, { repeats: true }))),
    );
    expect(again.map(({ outcome }) => outcome).toSorted()).toEqual(['busy', 'busy', 'busy', 'run']);
  });

  test('a claim that is made again is the same claim', async () => {
    const { a, b, call } = await ledgers();
    await a.claim(call, termsOf('first'));
    expect(await b.claim(call, termsOf('first'))).toEqual({ outcome: 'run' });
    await a.release(call, 'first');
    await b.release(call, 'first');
    expect(await b.claim(call, termsOf('second'))).toEqual({ outcome: 'run' });
    await expect(a.release(call, 'third')).rejects.toMatchObject(code('call_not_claimed'));
  });

  test('a call that was never claimed has no result, and nothing to release', async () => {
    const { a, call } = await ledgers();
    await expect(a.keepResult(call, 'first', { result: 1 })).rejects.toMatchObject(code('call_not_claimed'));
    await expect(a.release(call, 'first')).rejects.toMatchObject(code('call_not_claimed'));
  });

  test('a call is its own in every task and for every owner', async () => {
    const { a, call } = await ledgers();
    await a.claim(call, termsOf('first'));
    await a.keepResult(call, 'first', { result: 'a secret' });
    for (const other of [{ owner: STRANGER }, { task: 'another' }, { key: 'send_mail 2' }])
      expect(await a.claim({ ...call, ...other }, termsOf('second'))).toEqual({ outcome: 'run' });
  });

  test('a call that is released again and again is given up', async () => {
    const { a, call } = await ledgers();
    for (let number = 0; number <= 16; number++) {
      expect(await a.claim(call, termsOf(`claim ${number}`))).toEqual({ outcome: 'run' });
      await a.release(call, `claim ${number}`);
    }
    await expect(a.claim(call, termsOf('one more'))).rejects.toMatchObject({
      ...code('call_released_too_often'),
      status: 409,
    });
  });
});
