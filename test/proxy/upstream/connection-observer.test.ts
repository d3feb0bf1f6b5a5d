import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { limitSilence } from '../../../src/proxy/upstream/connection-observer.ts';

const WITHIN_MS = 5_000;

class Session extends EventEmitter {
  readonly closed = false;
  readonly destroyed = false;
  pings = 0;
  answer: () => void = () => {};
  ping(onAnswer: () => void): boolean {
    this.pings++;
    this.answer = onAnswer;
    return true;
  }
}

function observed() {
  const session = new Session();
  const socket = { destroy: vi.fn() };
  limitSilence(session as unknown as Parameters<typeof limitSilence>[0], socket);
  return { session, socket };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('an HTTP/2 session', () => {
  test('that answers is asked again and again', () => {
    const { session, socket } = observed();
    for (let pings = 1; pings <= 3; pings++) {
      vi.advanceTimersByTime(WITHIN_MS);
      expect(session.pings).toBe(pings);
      session.answer();
    }
    expect(socket.destroy).not.toHaveBeenCalled();
  });

  test('that does not answer in time loses its connection', () => {
    const { socket } = observed();
    vi.advanceTimersByTime(WITHIN_MS);
    vi.advanceTimersByTime(WITHIN_MS - 1);
    expect(socket.destroy).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(socket.destroy).toHaveBeenCalledOnce();
  });

  test('whose answer came while this process stood still keeps it: the late timer fires before the answer is read', () => {
    const { session, socket } = observed();
    vi.advanceTimersByTime(WITHIN_MS);
    // However long the process stood still, an interval fires only once.
    vi.advanceTimersToNextTimer();
    session.answer();
    vi.advanceTimersByTime(WITHIN_MS);
    expect(socket.destroy).not.toHaveBeenCalled();
  });

  test('that is closed is asked nothing more', () => {
    const { session } = observed();
    session.emit('close');
    vi.advanceTimersByTime(3 * WITHIN_MS);
    expect(session.pings).toBe(0);
  });
});
