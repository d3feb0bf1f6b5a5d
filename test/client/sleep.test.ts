import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { sleep } from '../../src/client/retry-budget.ts';

const REASON = new Error('enough');

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('sleep', () => {
  test('ends when its time is over, and leaves nothing behind', async () => {
    const { signal } = new AbortController();
    const sleeping = sleep(1_000, signal);
    await vi.advanceTimersByTimeAsync(1_000);
    await sleeping;
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('ends at once when it is aborted, and leaves nothing behind', async () => {
    const controller = new AbortController();
    const sleeping = sleep(1_000, controller.signal);
    controller.abort(REASON);
    await expect(sleeping).rejects.toBe(REASON);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('does not begin when it was aborted before', async () => {
    await expect(sleep(1_000, AbortSignal.abort(REASON))).rejects.toBe(REASON);
    expect(vi.getTimerCount()).toBe(0);
  });
});
