import { randomBytes } from 'node:crypto';

/** So that a takeover which Redis has forgotten is not taken for the one that has its number now. */
export const newMark = (): string => randomBytes(4).toString('hex');
