import { randomBytes } from 'node:crypto';
import type { Takeover } from './store.ts';

/** The epoch of a run that was never taken over. */
export const FIRST_EPOCH = 1;

/**
 * An epoch as the ids of its events have it: its number and, where the store could forget it and then give the same
 * number to another, the mark of its takeover: `2-5f3c0a9e`.
 */
export type EpochName = string;

export const FIRST_EPOCH_NAME: EpochName = String(FIRST_EPOCH);

/** The number of the epoch in which an event was delivered. */
export const epochAt = (seq: number, takeovers: readonly Takeover[]): number =>
  FIRST_EPOCH + 1 + takeovers.findLastIndex((takeover) => takeover.seq < seq);

/** All epochs of a run, in order. */
export const epochNames = (takeovers: readonly Takeover[]): readonly EpochName[] => [
  FIRST_EPOCH_NAME,
  ...takeovers.map((_, index) => nameOf(FIRST_EPOCH + 1 + index, takeovers)),
];

export const epochNameAt = (seq: number, takeovers: readonly Takeover[]): EpochName =>
  nameOf(epochAt(seq, takeovers), takeovers);

/** The name of the epoch that these takeovers led to. */
export const latestEpochName = (takeovers: readonly Takeover[]): EpochName =>
  nameOf(FIRST_EPOCH + takeovers.length, takeovers);

/** So that a takeover which the store has forgotten is not taken for the one that has its number now. */
export const newMark = (): string => randomBytes(4).toString('hex');

function nameOf(epoch: number, takeovers: readonly Takeover[]): EpochName {
  const mark = takeovers[epoch - FIRST_EPOCH - 1]?.mark;
  return mark === undefined ? String(epoch) : `${epoch}-${mark}`;
}
