import type { ServerResponse } from 'node:http';

/**
 * Cuts off a client that takes nothing of what it was sent for `stall_ms`. Silence of the provider does not count,
 * and neither does slowness: the socket's timer starts anew whenever the kernel took another byte.
 *
 * The returned function lifts the limit. While it stands it costs something with every write.
 */
export function limitStall(response: ServerResponse, stall_ms: number): () => void {
  const cutOff = () => {
    if (response.socket && response.socket.writableLength > 0) response.destroy();
  };
  response.setTimeout(stall_ms, cutOff);
  return () => response.off('timeout', cutOff).setTimeout(0);
}
