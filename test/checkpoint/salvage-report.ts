import type { FinalStatus, RunId } from '../../src/checkpoint/store.ts';

export const LEASE_MS = 1000;
export const SALVAGE_AFTER_MS = 400;

/** What a salvaging process reports. */
export type SalvageReport =
  | { readonly kept: RunId }
  | { readonly salvaged: RunId; readonly status: FinalStatus }
  | { readonly error: string };
