import { timingSafeEqual } from 'node:crypto';
import type { Owner } from './store.ts';

/** In constant time, so that an owner cannot be found out digit by digit. `stored` may be anything. */
export function isSameOwner(stored: string, given: Owner): boolean {
  const [left, right] = [Buffer.from(stored), Buffer.from(given)];
  return left.length === right.length && timingSafeEqual(left, right);
}
