import { describe, expect, test } from 'vitest';
import { detachTimeoutOf } from '../../../src/proxy/api/respond.ts';
import { Fleet } from '../../simulation/fleet.ts';
import { OWNER, RUN } from '../../simulation/simulate.ts';

function setting() {
  const fleet = new Fleet({ parts: [{ text: 'kelp' }] });
  const { context } = fleet.replica();
  const isRead = () => fleet.time.drive(detachTimeoutOf(context).isRead(RUN, OWNER));
  return { notes: context.store.notes, isRead };
}

describe('a run without its client', () => {
  test('is read by the reader that has left a note', async () => {
    const { notes, isRead } = setting();
    expect(await isRead()).toBe(false);
    await notes.put(OWNER, { kind: 'reader', name: RUN }, '', 1_000);
    expect(await isRead()).toBe(true);
  });

  test('may have a reader while the store fails', async () => {
    const { notes, isRead } = setting();
    notes.get = async () => {
      throw new Error('the store is down');
    };
    expect(await isRead()).toBe(true);
  });

  test('may have a reader while the store does not answer', async () => {
    const { notes, isRead } = setting();
    notes.get = () => new Promise(() => {});
    expect(await isRead()).toBe(true);
  });
});
