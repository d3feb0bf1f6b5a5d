import type { Claim, FsyncPolicy, Refusal } from './file-log.ts';
import type { FinalStatus, RunId } from './store.ts';

/** Between the thread that serves and the thread that writes. */

export interface WriterThreadData {
  readonly dir: string;
  readonly ttl_ms: number;
  readonly fsync: FsyncPolicy;
}

/** All appends of one turn: their texts in one string, and pairs of slot and length. Answered by position. */
export interface BatchMessage {
  readonly kind: 'batch';
  readonly text: string;
  readonly meta: Int32Array;
}

export type Request =
  | {
      readonly kind: 'acquire';
      readonly slot: number;
      readonly run: RunId;
      readonly owner: string;
    }
  | { readonly kind: 'finish'; readonly slot: number; readonly status: FinalStatus; readonly seq: number }
  | { readonly kind: 'release'; readonly slot: number }
  | { readonly kind: 'check' }
  | { readonly kind: 'close' };

export interface RequestMessage {
  readonly kind: 'request';
  readonly id: number;
  readonly request: Request;
}

export type Answer =
  | { readonly kind: 'batch'; readonly refused: ReadonlyMap<number, Refusal> }
  | { readonly kind: 'done'; readonly id: number; readonly claim?: Claim }
  | { readonly kind: 'refused'; readonly id: number; readonly refusal: Refusal }
  | { readonly kind: 'sweep_failed'; readonly refusal: Refusal };
