/** Time as the relay sees it, so that a test can run hours of clocks and backoff in no time at all. */
export interface Time {
  /** Milliseconds, monotonic. */
  now(): number;
  /** Milliseconds since the Unix epoch. */
  wall(): number;
  /** Calls back once after `delay_ms`; the returned function cancels. */
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

/** Resolves after `delay_ms`, or at once when `signal` aborts; the caller looks at the signal. */
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

/** After each of them what has arrived is read: when it is this process that was busy, what was waited for is not to blame. */
const SLICES = 5;

/**
 * The result of `work`, or undefined when it does not come within `limit_ms`. `work` continues; when it fails in time,
 * this rejects, and later on it is no concern of ours.
 */
export function inTime<Result>(
  work: Promise<Result>,
  time: Time,
  limit_ms: number,
): Promise<Result | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<Result | undefined>();
  let slices = SLICES;
  let cancelTimer = () => {};
  const wait = () => {
    if (slices-- === 0) resolve(undefined);
    else cancelTimer = time.after(limit_ms / SLICES, wait);
  };
  wait();
  work.then(resolve, reject).finally(() => cancelTimer());
  return promise;
}
