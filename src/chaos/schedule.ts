import { createHash } from 'node:crypto';
import type { Fault } from './fault.ts';

/** Which requests get a fault. */
export interface Schedule {
  /** At least one; those that are drawn are drawn alike. */
  readonly faults: readonly Fault[];
  /** Of the requests, from 0 to 1. */
  readonly share: number;
  readonly seed: number;
}

/** The fault of the request with this number, from 1: a function of the schedule alone, whatever was asked before. */
export function faultOf({ faults, share, seed }: Schedule, request: number): Fault | undefined {
  const drawn = createHash('sha256').update(`${seed} ${request}`).digest();
  const isChosen = fraction(drawn.readUInt32BE(0)) < share;
  return isChosen ? faults[Math.floor(fraction(drawn.readUInt32BE(4)) * faults.length)] : undefined;
}

const fraction = (drawn: number): number => drawn / 2 ** 32;
