import type { SealingKey } from '../seal.ts';
import type { Damage, Orphan, Owner, RunEnd, RunId } from '../store.ts';
import type { Claim } from './file-log.ts';
import type { Refusal } from './file-refusal.ts';
import type { FsyncPolicy } from './file-segments.ts';

/** Between the thread that serves and the thread that writes. */

export interface WriterThreadData {
  readonly dir: string;
  readonly ttl_ms: number;
  readonly complete_ttl_ms: number;
  readonly lease_ms: number;
  readonly fsync: FsyncPolicy;
  readonly replica: string;
  readonly sealing_keys: readonly SealingKey[];
}

/** All appends of one turn: their texts in one string, and pairs of slot and length. Answered by position. */
export interface BatchMessage {
  readonly kind: 'batch';
  readonly text: string;
  readonly meta: Int32Array;
}

interface Note {
  readonly digest: string;
}
interface NewNote extends Note {
  readonly text: string;
  readonly expires_at_ms: number;
}

/** What can be asked for besides appends, and what the answer is. */
export interface Exchanges {
  acquire(request: {
    readonly slot: number;
    readonly run: RunId;
    readonly owner: Owner;
    readonly after: number;
  }): Claim;
  finish(request: { readonly slot: number; readonly end: RunEnd; readonly seq: number }): Damage | undefined;
  purge(request: { readonly run: RunId; readonly owner: Owner }): void;
  release(request: { readonly slot: number; readonly seq: number }): void;
  forget(request: { readonly slot: number }): void;
  orphans(request: { readonly limit: number }): readonly Orphan[];
  put_note(request: NewNote): void;
  claim_note(request: NewNote & { readonly in_place_of?: string }): string;
  get_note(request: Note): string | undefined;
  take_note(request: Note): string | undefined;
  index_run(request: { readonly owner: Owner; readonly entry: string }): void;
  indexed_runs(request: { readonly owner: Owner }): readonly string[];
  forget_runs(request: { readonly owner: Owner; readonly entries: readonly string[] }): void;
  check(request: undefined): void;
  close(request: undefined): void;
}

export type RequestKind = keyof Exchanges;
export type RequestOf<Kind extends RequestKind> = Parameters<Exchanges[Kind]>[0];
export type AnswerTo<Kind extends RequestKind> = ReturnType<Exchanges[Kind]>;

/** How the writing thread answers each of them; what is thrown is a refusal. */
export type RequestHandlers = {
  readonly [Kind in RequestKind]: (request: RequestOf<Kind>) => AnswerTo<Kind> | Promise<AnswerTo<Kind>>;
};

export interface RequestMessage {
  readonly kind: RequestKind;
  readonly id: number;
  readonly request: unknown;
}

export type Answer =
  | { readonly kind: 'batch'; readonly refusals: ReadonlyMap<number, Refusal> }
  | { readonly kind: 'done'; readonly id: number; readonly answer: unknown }
  | { readonly kind: 'refused'; readonly id: number; readonly refusal: Refusal }
  | { readonly kind: 'sweep_failed'; readonly refusal: Refusal };
