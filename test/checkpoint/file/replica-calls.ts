import type { RunId } from '../../../src/checkpoint/store.ts';

export const LEASE_MS = 1000;

/** What the process is told to do, and what it answers. Sequence numbers are those of the last event stored. */
export interface ReplicaCalls {
  /** Begins a run and stores one event. */
  begin(run: RunId): void;
  /** Tries to follow epoch 1 of every run, one after the other, and stores an event in each that it gets. */
  follow(runs: readonly RunId[]): readonly RunId[];
  /** Appends an event to the run begun before. `refused` is the name of the error. */
  append(seq: number): { readonly refused?: string };
  /** Blocks the thread that serves. */
  wedge(for_ms: number): void;
}

export interface ReplicaCall<Kind extends keyof ReplicaCalls = keyof ReplicaCalls> {
  readonly kind: Kind;
  readonly argument: Parameters<ReplicaCalls[Kind]>[0];
}
