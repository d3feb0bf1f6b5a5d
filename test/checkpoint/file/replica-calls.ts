import type { RunId } from '../../../src/checkpoint/store.ts';

export const LEASE_MS = 1000;

/** The calls that the process accepts, and its answers. Sequence numbers are those of the last stored event. */
export interface ReplicaCalls {
  /** Begins a run and stores one event. */
  begin(run: RunId): void;
  /** Tries to follow epoch 1 of each run in turn. Stores an event in each run that it wins, and returns those runs. */
  follow(runs: readonly RunId[]): readonly RunId[];
  /** Appends an event to the run that it began. `refused` is the name of the error. */
  append(seq: number): { readonly refused?: string };
  /** Blocks the process's main thread. */
  wedge(for_ms: number): void;
}

export interface ReplicaCall<Kind extends keyof ReplicaCalls = keyof ReplicaCalls> {
  readonly kind: Kind;
  readonly argument: Parameters<ReplicaCalls[Kind]>[0];
}
