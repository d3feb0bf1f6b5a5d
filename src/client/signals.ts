/** The part of `process` in Node, Bun and Deno that this module needs. */
interface Process {
  readonly pid: number;
  on(signal: string, listener: (signal: string) => void): unknown;
  off(signal: string, listener: (signal: string) => void): unknown;
  listenerCount(signal: string): number;
  kill(pid: number, signal: string): unknown;
}

/** How long a process waits for its last request at most. */
const LAST_MS_MAX = 5000;

/**
 * On the first of these signals, calls `last`, and ends the process with the signal once that has settled, unless something
 * else listens for it. Returns a function that undoes this. Throws a `TypeError` in a browser, which has no signals.
 */
export function onSignals(
  signals: readonly string[],
  last: (signal: string) => Promise<unknown>,
): () => void {
  const { process } = globalThis as { readonly process?: Process };
  if (!process?.on) throw new TypeError('there are no signals here to pause the task on');
  const takeBack = () => {
    for (const signal of signals) process.off(signal, listener);
  };
  const listener = (signal: string) => {
    takeBack();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const limit = new Promise((resolve) => {
      timer = setTimeout(resolve, LAST_MS_MAX);
    });
    const said = last(signal).catch(() => {});
    void Promise.race([said, limit]).then(() => {
      clearTimeout(timer);
      if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
    });
  };
  for (const signal of signals) process.on(signal, listener);
  return takeBack;
}
