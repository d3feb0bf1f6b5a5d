import { describe, expect, it } from 'vitest';
import { requestDigest } from '../../../src/proxy/resume/request-digest.ts';
import { keyNote } from '../../../src/proxy/resume/run-lookup.ts';
import { newRunId, OWNER, STRANGER } from '../../checkpoint/fixtures.ts';
import { begin, finish, LEASE_MS, lookupOf } from './lookup-setting.ts';

describe('a request that was made before', () => {
  it('gets its run when the replica is lost', async () => {
    const setting = lookupOf();
    const { run } = await begin(setting, 'Hel', 'lo');
    await setting.other.close();
    expect(await setting.find(setting.ask())).toBe(run);
    expect(setting.time.now()).toBe(0);
  });

  it('gets its run when that was handed over', async () => {
    const setting = lookupOf();
    const lease = await begin(setting, 'Hello');
    await setting.other.release(lease);
    expect(await setting.find(setting.ask())).toBe(lease.run);
  });

  it('gets it once: of two requests, one gets a run of its own', async () => {
    const setting = lookupOf();
    const { run } = await begin(setting, 'Hello');
    await setting.other.close();
    const found = [await setting.find(setting.ask()), await setting.find(setting.ask())];
    expect(found).toEqual([run, undefined]);
    // Once the run continues, a repetition may need it again.
    setting.lookup.remember(setting.ask(), run);
    expect(await setting.find(setting.ask())).toBe(run);
  });

  it.each([
    ['of another owner', { owner: STRANGER }],
    [
      'that says something else',
      {
        digest: requestDigest('secret', {
          wire: 'chat_completions',
          events: 'none',
          body: '{"model":"other"}',
        }),
      },
    ],
    [
      'that wants other events',
      {
        digest: requestDigest('secret', {
          wire: 'chat_completions',
          events: 'chunks',
          body: '{"model":"m"}',
        }),
      },
    ],
  ])('is not one %s', async (_, more) => {
    const setting = lookupOf();
    await begin(setting, 'Hello');
    await setting.other.close();
    expect(await setting.find(setting.ask(more))).toBeUndefined();
  });

  it('is a new run while nothing was delivered, without delay', async () => {
    const setting = lookupOf();
    await begin(setting);
    expect(await setting.find(setting.ask())).toBeUndefined();
    await setting.other.close();
    expect(await setting.find(setting.ask())).toBeUndefined();
    expect(setting.time.now()).toBe(0);
  });

  it.each(['complete', 'failed', 'cancelled', 'recovered_from_partial'] as const)(
    'is a new run when the first one is %s',
    async (status) => {
      const setting = lookupOf();
      const lease = await begin(setting, 'Hello');
      await finish(setting.other, lease, status);
      expect(await setting.find(setting.ask())).toBeUndefined();
    },
  );

  it('is a new run, without delay, while the first one is delivered here', async () => {
    const setting = lookupOf();
    const { run } = await begin(setting, 'Hello');
    const active = setting.registry.begin(OWNER);
    setting.registry.hold(run, active);
    expect(await setting.find(setting.ask())).toBeUndefined();
    expect(setting.time.now()).toBe(0);
    active.end();
    // It can be found again if its replica dies after all.
    await setting.other.close();
    expect(await setting.find(setting.ask())).toBe(run);
  });

  it('is not looked for when that is not wanted, nor when a key says what it is', async () => {
    const setting = lookupOf({ match_requests: false });
    await begin(setting, 'Hello');
    await setting.other.close();
    expect(await setting.find(setting.ask())).toBeUndefined();

    const keyed = lookupOf();
    await begin(keyed, 'Hello');
    await keyed.other.close();
    expect(await keyed.find(keyed.ask({ note: keyNote('a new key') }))).toBeUndefined();
    keyed.lookup.remember(keyed.ask({ digest: 'of a keyed request', note: keyNote('key') }), newRunId());
    expect(await keyed.store.notes.get(OWNER, { kind: 'request', name: 'of a keyed request' })).toBe(
      undefined,
    );
  });
});

describe('a run whose client has left it', () => {
  const LEFT = { status: 'cancelled', at_ms: 0, cause: 'client_left' } as const;

  it('is found when it has ended, once', async () => {
    const setting = lookupOf();
    const lease = await begin(setting, 'Hello');
    await setting.other.finish(lease, LEFT);
    expect(await setting.find(setting.ask())).toBe(lease.run);
    expect(await setting.find(setting.ask())).toBeUndefined();
  });

  it('is waited for while it ends', async () => {
    const setting = lookupOf();
    const lease = await begin(setting, 'Hello');
    setting.lookup.leave(setting.ask(), lease.run, 'ending');
    setting.time.after(100, () => void setting.other.finish(lease, LEFT));
    expect(await setting.find(setting.ask())).toBe(lease.run);
    expect(setting.time.now()).toBeLessThan(200);
  });

  it('is found while it lasts, and when it has ended meanwhile', async () => {
    const setting = lookupOf();
    const lease = await begin(setting, 'Hello');
    setting.lookup.leave(setting.ask(), lease.run, 'detached');
    expect(await setting.find(setting.ask())).toBe(lease.run);
    setting.lookup.leave(setting.ask(), lease.run, 'detached');
    await finish(setting.other, lease, 'complete');
    expect(await setting.find(setting.ask())).toBe(lease.run);
  });

  it('is found although its client was back before that was noticed, here', async () => {
    for (const left of ['detached', 'ending'] as const) {
      const setting = lookupOf();
      const lease = await begin(setting, 'Hello');
      const active = setting.registry.begin(OWNER);
      setting.registry.hold(lease.run, active);
      setting.time.after(0, () => setting.lookup.leave(setting.ask(), lease.run, left));
      setting.time.after(100, () => void setting.other.finish(lease, LEFT));
      expect(await setting.find(setting.ask())).toBe(lease.run);
      // Its note is used up as well, because another repetition asks for another sample.
      expect(await setting.find(setting.ask())).toBeUndefined();
    }
  });

  it('is found although its client was back before that was noticed, elsewhere', async () => {
    for (const left of ['detached', 'ending'] as const) {
      const setting = lookupOf();
      const { time, store } = setting;
      const lease = await begin(setting, 'Hello');
      store.holder = () => ({ state: 'alive', silent_ms: (900 + time.now()) % 1000 });
      time.after(50, () => setting.lookup.leave(setting.ask(), lease.run, left));
      time.after(400, () => void setting.other.finish(lease, LEFT));
      expect(await setting.find(setting.ask())).toBe(lease.run);
      expect(await setting.find(setting.ask())).toBeUndefined();
    }
  });

  it.each([
    ['nothing of it was delivered', {}, []],
    ['what was delivered of it could not be joined', { isJoinable: () => false }, ['Hello']],
  ])('is not found when %s', async (_, more, texts) => {
    const setting = lookupOf();
    const lease = await begin(setting, ...texts);
    await setting.other.finish(lease, LEFT);
    expect(await setting.find(setting.ask(more))).toBeUndefined();
  });

  it('is found when it was salvaged, but not when its journal was damaged after its client had all of it', async () => {
    for (const [cause, isFound] of [
      ['replica_lost', true],
      ['damaged_checkpoint', false],
    ] as const) {
      const setting = lookupOf();
      const lease = await begin(setting, 'Hello');
      await setting.other.finish(lease, { status: 'recovered_from_partial', at_ms: 0, cause });
      expect(await setting.find(setting.ask())).toBe(isFound ? lease.run : undefined);
    }
  });
});

describe('a replica that looks alive', () => {
  it('and gives another sign of life, keeps its run', async () => {
    const setting = lookupOf();
    const { run } = await begin(setting, 'Hello');
    const { time, store } = setting;
    store.holder = () => ({ state: 'alive', silent_ms: (900 + time.now()) % 1000 });
    expect(await setting.find(setting.ask())).toBeUndefined();
    expect(time.now()).toBeLessThanOrEqual(LEASE_MS / 2);
    store.holder = () => ({ state: 'lost' });
    expect(await setting.find(setting.ask())).toBe(run);
  });

  it('and gives none, loses it when its lease lapses', async () => {
    const setting = lookupOf();
    const { run } = await begin(setting, 'Hello');
    const { time, store } = setting;
    store.holder = () => {
      const silent_ms = 500 + time.now();
      return silent_ms <= LEASE_MS ? { state: 'alive', silent_ms } : { state: 'lost' };
    };
    expect(await setting.find(setting.ask())).toBe(run);
    expect(time.now()).toBeGreaterThan(LEASE_MS - 500);
    expect(time.now()).toBeLessThanOrEqual(LEASE_MS);
  });

  it('delays no request for longer than its lease', async () => {
    const setting = lookupOf();
    await begin(setting, 'Hello');
    setting.store.holder = () => ({ state: 'alive', silent_ms: 0 });
    expect(await setting.find(setting.ask())).toBeUndefined();
    expect(setting.time.now()).toBeLessThanOrEqual(LEASE_MS * 1.1);
  });

  it('is waited for no longer than the client waits', async () => {
    const setting = lookupOf();
    await begin(setting, 'Hello');
    setting.store.holder = () => ({ state: 'alive', silent_ms: 0 });
    const client = new AbortController();
    setting.time.after(100, () => client.abort());
    expect(await setting.find(setting.ask({ signal: client.signal }))).toBeUndefined();
    expect(setting.time.now()).toBeLessThan(LEASE_MS / 2);
  });
});

describe('a store that does not answer', () => {
  const silence = () => Promise.withResolvers<never>().promise;

  it('delays a request that is no repetition for a moment, and the next ones not at all', async () => {
    const setting = lookupOf();
    setting.store.notes.consume = silence;
    for (let request = 0; request < 10; request++) {
      expect(await setting.find(setting.ask())).toBeUndefined();
      expect(setting.time.now()).toBe(250);
    }
  });

  it('delays one that is for no longer than two seconds, and the next ones not at all', async () => {
    const setting = lookupOf();
    await begin(setting, 'Hello');
    await setting.other.close();
    setting.store.gate = silence();
    expect(await setting.find(setting.ask())).toBeUndefined();
    expect(setting.time.now()).toBe(2000);
    const { reads } = setting.store;
    for (let request = 0; request < 10; request++) await setting.find(setting.ask());
    expect(setting.time.now()).toBe(2000);
    expect(setting.store.reads).toBe(reads);
  });

  it('is asked again after a while', async () => {
    const setting = lookupOf();
    const { time, store } = setting;
    const { run } = await begin(setting, 'Hello');
    await setting.other.close();
    store.gate = silence();
    await setting.find(setting.ask());
    store.gate = undefined;
    await time.drive(new Promise<void>((resolve) => time.after(5000, resolve)));
    setting.lookup.remember(setting.ask(), run);
    expect(await setting.find(setting.ask())).toBe(run);
  });

  it('keeps no key from being used', async () => {
    const setting = lookupOf();
    setting.store.notes.claim = silence;
    expect(await setting.find(setting.ask({ note: keyNote('key') }))).toBeUndefined();
    expect(setting.time.now()).toBe(2000);
    // The store has failed recently, so the wait is shorter.
    expect(await setting.find(setting.ask({ note: keyNote('key') }))).toBeUndefined();
    expect(setting.time.now()).toBe(2250);
    setting.store.notes.claim = () => Promise.reject(new Error('connection lost'));
    expect(await setting.find(setting.ask({ note: keyNote('key') }))).toBeUndefined();
    expect(setting.time.now()).toBe(2250);
  });

  it('within two seconds has the answer of a key found all the same, each time it is asked', async () => {
    const setting = lookupOf();
    const { time, store, other } = setting;
    const sent = setting.ask({ note: keyNote('key') });
    expect(await setting.find(sent)).toBeUndefined();
    await finish(other, await other.acquire(sent.fresh, OWNER), 'complete');
    const { notes } = store;
    const claim = notes.claim.bind(notes);
    const late = () => new Promise<void>((resolve) => time.after(1900, resolve));
    notes.claim = async (...asked) => late().then(() => claim(...asked));
    store.gate = late();
    expect(await setting.find(setting.ask({ note: keyNote('key') }))).toBe(sent.fresh);
  });
});
