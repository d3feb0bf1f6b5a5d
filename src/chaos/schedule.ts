import { createHash } from 'node:crypto';
import type { Fault } from './fault.ts';

/** Decides which requests get a fault. */
export interface Schedule {
  /** At least one. All are equally likely. */
  readonly faults: readonly Fault[];
  /** Share of requests with a fault, from 0 to 1. */
  readonly share: number;
  readonly seed: number;
}

/** The fault for the request with this number, from 1. Depends only on the schedule, not on earlier calls. */
export function faultOf({ faults, share, seed }: Schedule, request: number): Fault | undefined {
  const drawn = createHash('sha256').update(`${seed} ${request}`).digest();
  const isChosen = fraction(drawn.readUInt32BE(0)) < share;
  return isChosen ? faults[Math.floor(fraction(drawn.readUInt32BE(4)) * faults.length)] : undefined;
}

const fraction = (drawn: number): number => drawn / 2 ** 32;
