import { describe, expect, it } from 'vitest';
import { keyNote } from '../../../src/proxy/resume/run-lookup.ts';
import { HEADER_RECORD, OWNER, SMALL_RUN, STRANGER, textRecord } from '../../checkpoint/fixtures.ts';
import { begin, finish, lookupOf, type Setting } from './lookup-setting.ts';

describe('an idempotency key', () => {
  /** Sends the first request with the key and begins its run. */
  async function first(setting: Setting, key = 'key') {
    const asked = setting.ask({ note: keyNote(key) });
    expect(await setting.find(asked)).toBeUndefined();
    const lease = await setting.other.acquire(asked.fresh, OWNER);
    await setting.other.append(lease, [HEADER_RECORD, textRecord(0, 'Hello')]);
    return lease;
  }

  it('stands for its run while that is under way', async () => {
    const setting = lookupOf();
    const { run } = await first(setting);
    expect(await setting.find(setting.ask({ note: keyNote('key') }))).toBe(run);
    await setting.other.close();
    expect(await setting.find(setting.ask({ note: keyNote('key') }))).toBe(run);
    expect(setting.time.now()).toBe(0);
  });

  it('stands for its run when that is complete', async () => {
    const setting = lookupOf();
    const lease = await first(setting);
    await finish(setting.other, lease, 'complete');
    expect(await setting.find(setting.ask({ note: keyNote('key') }))).toBe(lease.run);
  });

  it.each(['failed', 'cancelled', 'timeout_partial'] as const)(
    'is used again when its run is %s, and stands for the new one then',
    async (status) => {
      const setting = lookupOf();
      await finish(setting.other, await first(setting), status);
      const again = await first(setting);
      expect(await setting.find(setting.ask({ note: keyNote('key') }))).toBe(again.run);
    },
  );

  it('stands for a salvaged run that has settled calls: they are its answer', async () => {
    const setting = lookupOf();
    const asked = setting.ask({ note: keyNote('key') });
    await setting.find(asked);
    const lease = await setting.other.acquire(asked.fresh, OWNER);
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [] };
    const [header, ...records] = SMALL_RUN;
    if (!header) throw new Error('the run has no header');
    await setting.other.append(lease, [
      header,
      { seq: 1, events: [{ deltas: [], payload: JSON.stringify(chunk) }] },
      { seq: 4, events: records.flatMap(({ events }) => events).slice(3, 6) },
    ]);
    await finish(setting.other, lease, 'recovered_from_partial');
    expect(await setting.find(setting.ask({ note: keyNote('key') }))).toBe(lease.run);
  });

  it.each([
    { status: 'recovered_from_partial', cause: 'replica_lost' },
    { status: 'recovered_from_partial', cause: 'damaged_checkpoint' },
    { status: 'cancelled', cause: 'client_left' },
  ] as const)('stands for a run that is $status ($cause), whose answer continues', async (end) => {
    const setting = lookupOf();
    const lease = await first(setting);
    await setting.other.finish(lease, { ...end, at_ms: 0 });
    expect(await setting.find(setting.ask({ note: keyNote('key') }))).toBe(lease.run);
    const apart = setting.ask({ note: keyNote('key'), isJoinable: () => false });
    expect(await setting.find(apart)).toBeUndefined();
  });

  it('stands for the run that continues another one, once that is opened', async () => {
    const setting = lookupOf();
    await first(setting);
    const successor = await begin(setting, 'Hello');
    setting.lookup.remember(setting.ask({ note: keyNote('key') }), successor.run);
    expect(await setting.find(setting.ask({ note: keyNote('key') }))).toBe(successor.run);
  });

  it.each(['', 'no JSON', 'null', '[]', '{}', '{"run":7}', '{"run":"../x"}'])(
    'whose note is %j, and says nothing, stands for the run that begins now',
    async (note) => {
      const setting = lookupOf();
      await setting.other.notes.put(OWNER, keyNote('key'), note, 1_000_000);
      const { run } = await first(setting);
      expect(await setting.find(setting.ask({ note: keyNote('key') }))).toBe(run);
    },
  );

  it('is refused with another request', async () => {
    const setting = lookupOf();
    await first(setting);
    await expect(
      setting.find(setting.ask({ note: keyNote('key'), digest: 'another' })),
    ).rejects.toMatchObject({
      code: 'idempotency_mismatch',
      status: 422,
    });
  });

  it('is its owner’s own', async () => {
    const setting = lookupOf();
    await first(setting);
    expect(
      await setting.find(setting.ask({ note: keyNote('key'), owner: STRANGER, digest: 'another' })),
    ).toBe(undefined);
  });

  it('of a request that is only a moment ahead is waited for', async () => {
    const setting = lookupOf();
    const { time, other } = setting;
    const ahead = setting.ask({ note: keyNote('key') });
    expect(await setting.find(ahead)).toBeUndefined();
    time.after(100, () => void other.acquire(ahead.fresh, OWNER));
    expect(await setting.find(setting.ask({ note: keyNote('key') }))).toBe(ahead.fresh);
  });

  it.each([
    ['never began', async () => {}],
    ['failed', (setting: Setting) => first(setting).then((lease) => finish(setting.other, lease, 'failed'))],
  ])('of a run that %s is used again once, however many ask at the same time', async (_, end) => {
    const setting = lookupOf();
    if (_ === 'never began') await setting.find(setting.ask({ note: keyNote('key') }));
    await end(setting);
    const asks = [1, 2, 3, 4].map(() => setting.ask({ note: keyNote('key') }));
    const found = asks.map(async (ask) => {
      const run = await setting.lookup.find(ask);
      if (run === undefined) await setting.other.acquire(ask.fresh, OWNER);
      return run ?? ask.fresh;
    });
    const runs = await setting.time.drive(Promise.all(found));

    expect(new Set(runs).size).toBe(1);
    expect(await setting.find(setting.ask({ note: keyNote('key') }))).toBe(runs[0]);
  });

  it('of a run that never began is used again', async () => {
    const setting = lookupOf();
    expect(await setting.find(setting.ask({ note: keyNote('key') }))).toBeUndefined();
    const again = await first(setting);
    expect(setting.time.now()).toBeLessThanOrEqual(1050);
    expect(await setting.find(setting.ask({ note: keyNote('key') }))).toBe(again.run);
  });
});
