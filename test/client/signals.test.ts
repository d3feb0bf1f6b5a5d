import { expect, test, vi } from 'vitest';
import { onSignals } from '../../src/client/signals.ts';

test('a process ends although its task cannot be paused: it waits for 5 s at most', async () => {
  vi.useFakeTimers();
  const kill = vi.spyOn(process, 'kill').mockReturnValue(true);
  try {
    onSignals(['SIGUSR2'], () => new Promise(() => {}));
    process.emit('SIGUSR2', 'SIGUSR2');
    await vi.advanceTimersByTimeAsync(4999);
    expect(kill).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(kill).toHaveBeenCalledExactlyOnceWith(process.pid, 'SIGUSR2');
    onSignals(['SIGUSR2'], () => Promise.reject(new Error('away')));
    process.emit('SIGUSR2', 'SIGUSR2');
    await vi.advanceTimersByTimeAsync(0);
    expect(kill).toHaveBeenCalledTimes(2);
  } finally {
    kill.mockRestore();
    vi.useRealTimers();
  }
});

test('there are no signals in a browser', () => {
  vi.stubGlobal('process', undefined);
  try {
    expect(() => onSignals(['SIGTERM'], async () => {})).toThrow('there are no signals here');
  } finally {
    vi.unstubAllGlobals();
  }
});
