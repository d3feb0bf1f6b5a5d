import { randomFillSync } from 'node:crypto';

const POOL_BYTES = 4096;

const pool = Buffer.alloc(POOL_BYTES);
let used_bytes = POOL_BYTES;

/**
 * So many random bytes as base64url, at most 4 KiB. They are drawn for many texts at once: a draw for each would take
 * 4 µs, twenty times as long as the rest.
 */
export function randomText(bytes: number): string {
  if (used_bytes + bytes > POOL_BYTES) {
    randomFillSync(pool);
    used_bytes = 0;
  }
  const start = used_bytes;
  used_bytes += bytes;
  return pool.toString('base64url', start, used_bytes);
}
