/** Rejects at once with the reason of the signal, if it aborts. */
export function sleep(delay_ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const wake = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', wake);
      resolve();
    }, delay_ms);
    if (signal.aborted) wake();
    else signal.addEventListener('abort', wake, { once: true });
  });
}
