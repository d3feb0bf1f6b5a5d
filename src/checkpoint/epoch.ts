import { randomBytes } from 'node:crypto';
import type { Takeover } from './store.ts';

/** The epoch of a run before any takeover. */
export const FIRST_EPOCH = 1;

/**
 * An epoch as it appears in event ids: its number and, if the store could forget an epoch and reuse its number, the
 * takeover's mark: `2-5f3c0a9e`.
 */
export type EpochName = string;

export const FIRST_EPOCH_NAME: EpochName = String(FIRST_EPOCH);

/** The number of the epoch that delivered an event. */
export const epochAt = (seq: number, takeovers: readonly Takeover[]): number =>
  FIRST_EPOCH + 1 + takeovers.findLastIndex((takeover) => takeover.seq < seq);

/** All epochs of a run, in order. */
export const epochNames = (takeovers: readonly Takeover[]): readonly EpochName[] => [
  FIRST_EPOCH_NAME,
  ...takeovers.map((_, index) => nameOf(FIRST_EPOCH + 1 + index, takeovers)),
];

export const epochNameAt = (seq: number, takeovers: readonly Takeover[]): EpochName =>
  nameOf(epochAt(seq, takeovers), takeovers);

/** The name of the epoch after the last of these takeovers. */
export const latestEpochName = (takeovers: readonly Takeover[]): EpochName =>
  nameOf(FIRST_EPOCH + takeovers.length, takeovers);

/** Distinguishes a takeover that the store has forgotten from a later one with the same number. */
export const newMark = (): string => randomBytes(4).toString('hex');

function nameOf(epoch: number, takeovers: readonly Takeover[]): EpochName {
  const mark = takeovers[epoch - FIRST_EPOCH - 1]?.mark;
  return mark === undefined ? String(epoch) : `${epoch}-${mark}`;
}
