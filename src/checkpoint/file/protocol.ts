import type { SealMaterial } from '../seal.ts';
import type { Damage, Orphan, Owner, RunEnd, RunId } from '../store.ts';
import type { Refusal } from './refusal.ts';
import type { FoundRun } from './run-image.ts';
import type { Outcome } from './segment-log.ts';

/*
 * Messages between the serving thread and the writer thread. Most of their cost is copying objects: their names are
 * copied, too. So the frequent ones are arrays.
 */

export interface WriterThreadData {
  readonly dir: string;
  /** How long a run is kept after its last append. */
  readonly ttl_ms: number;
  /** How long a complete run is kept. */
  readonly complete_ttl_ms: number;
  readonly lease_ms: number;
  /** Identifies this process as the holder of its epochs. */
  readonly replica: string;
  readonly seal: SealMaterial | undefined;
  readonly segment_bytes?: number | undefined;
}

interface Held {
  readonly run: RunId;
  readonly epoch: number;
}
interface Note {
  readonly digest: string;
}
interface NewNote extends Note {
  readonly text: string;
  readonly expires_at_ms: number;
}

/** Every kind of request with its answer. */
export interface Exchanges {
  /**
   * Claims the epoch after `after`. `seq`: the run's last event. `damage`: damage found in a run that is taken over.
   */
  acquire(request: { readonly run: RunId; readonly owner: Owner; readonly after: number }): {
    readonly seq: number;
    readonly damage?: Damage | undefined;
  };
  /** `entry`: the run's entry in its owner's index. `bodies`: of the records. */
  append(
    request: readonly [run: RunId, epoch: number, entry: string | undefined, ...bodies: string[]],
  ): undefined;
  /** `seq`: the last event. Answers with damage found in the run, if any. */
  finish(
    request: Held & { readonly owner: Owner; readonly end: RunEnd; readonly seq: number },
  ): Damage | undefined;
  release(request: Held & { readonly seq: number }): undefined;
  purge(request: { readonly run: RunId; readonly owner: Owner }): undefined;
  read(request: { readonly run: RunId }): FoundRun | undefined;
  orphans(request: { readonly limit: number }): readonly Orphan[];
  indexed_runs(request: { readonly owner: Owner }): readonly string[];
  forget_runs(request: { readonly owner: Owner; readonly runs: readonly RunId[] }): undefined;
  put_note(request: NewNote): undefined;
  claim_note(request: NewNote & { readonly in_place_of?: string | undefined }): string;
  get_note(request: Note): string | undefined;
  /** False if another process has moved the note in the meantime. */
  extend_note(request: Note & { readonly expires_at_ms: number }): boolean;
  take_note(request: Note): string | undefined;
  check(request: undefined): undefined;
}

export type RequestKind = keyof Exchanges;
export type RequestOf<Kind extends RequestKind> = Parameters<Exchanges[Kind]>[0];
export type AnswerTo<Kind extends RequestKind> = ReturnType<Exchanges[Kind]>;

/** Lines to append, and how to answer once their outcomes are known. */
export interface Writing<Answer> {
  readonly lines: readonly string[];
  answer(outcomes: readonly Outcome[]): Answer;
}

/** The writer thread's handler for each kind of request. A thrown error becomes a refusal. */
export type RequestHandlers = {
  readonly [Kind in RequestKind]: (
    request: RequestOf<Kind>,
  ) => { readonly answer: AnswerTo<Kind> } | Writing<AnswerTo<Kind>>;
};

export type Request = readonly [kind: RequestKind, request: unknown];

/** All requests of one turn, to be performed in order, or the final message. */
export type ToThread = readonly Request[] | 'close';

/** Undefined: the request was performed, and there is nothing to say. */
export type Reply = { readonly answer: unknown } | { readonly refusal: Refusal } | undefined;

/** `opened`: the log was read. `replies`: to the requests of the next batch. `failed`: the upkeep or the disk failed. */
export type FromThread =
  | { readonly kind: 'opened' }
  | { readonly kind: 'replies'; readonly replies: readonly Reply[] }
  | { readonly kind: 'failed'; readonly refusal: Refusal };
