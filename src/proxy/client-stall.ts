import type { ServerResponse } from 'node:http';

/**
 * Cuts off a client that takes nothing of what it was sent for `stall_ms`. Silence of the provider does not count,
 * and neither does slowness: the socket's timer starts anew whenever the kernel took another byte.
 */
export function limitStall(response: ServerResponse, stall_ms: number): void {
  response.setTimeout(stall_ms, () => {
    if (response.socket && response.socket.writableLength > 0) response.destroy();
  });
}
