/** The clock of the relay, replaceable so that tests can run hours of timeouts and backoff instantly. */
export interface Time {
  /** Monotonic time in milliseconds. */
  now(): number;
  /** Milliseconds since the Unix epoch. */
  wall(): number;
  /** Calls back once after `delay_ms`. Returns a function that cancels. */
  after(delay_ms: number, callback: () => void): () => void;
}

export const systemTime: Time = {
  now: () => performance.now(),
  wall: () => Date.now(),
  after(delay_ms, callback) {
    const timer = setTimeout(callback, delay_ms);
    return () => clearTimeout(timer);
  },
};

/** Resolves after `delay_ms`, or as soon as `signal` aborts, which the caller must check. */
export function sleep(time: Time, delay_ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const finish = () => {
      cancel();
      signal.removeEventListener('abort', finish);
      resolve();
    };
    const cancel = time.after(delay_ms, finish);
    signal.addEventListener('abort', finish, { once: true });
  });
}

/**
 * The limit is waited for in slices, between which arrived data is processed: if this process was busy, the awaited
 * side isn't to blame.
 */
const SLICES = 5;

/**
 * Resolves with the result of `work`, or with undefined after `limit_ms`. Rejects if `work` fails within the limit; a
 * later failure is ignored. `work` itself continues.
 */
export function inTime<Result>(
  work: Promise<Result>,
  time: Time,
  limit_ms: number,
): Promise<Result | undefined> {
  return new Promise((resolve, reject) => {
    let slices = SLICES;
    let cancelTimer = () => {};
    const wait = () => {
      if (slices-- === 0) resolve(undefined);
      else cancelTimer = time.after(limit_ms / SLICES, wait);
    };
    wait();
    // `finally` would make two more promises for every question to the store.
    work.then(
      (result) => {
        cancelTimer();
        resolve(result);
      },
      (error: unknown) => {
        cancelTimer();
        reject(error);
      },
    );
  });
}
